package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// cel-go's own tracker of costs can take long; an answer that comes later than this is of no use.
const longestEvaluation = 20 * time.Second

type expressionCase struct {
	Expr   string `json:"expr"`
	Claims string `json:"claims"`
	User   *struct {
		Username string              `json:"username"`
		UID      string              `json:"uid"`
		Groups   []string            `json:"groups"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	Env   string `json:"env"`
	Check string `json:"check"`
}

func (j *judges) answerExpression(line []byte) answer {
	var given expressionCase
	if err := json.Unmarshal(line, &given); err != nil {
		return answer{"oracleError": err.Error()}
	}
	compiled, err := j.compile(given)
	if err != nil {
		var detailed *apiservercel.Error
		if errors.As(err, &detailed) {
			return answer{"compileError": detailed.Detail}
		}
		return answer{"compileError": err.Error()}
	}
	found := answer{"outputType": compiled.AST.OutputType().String()}
	input, err := inputOf(given)
	if err != nil {
		found["evalError"] = err.Error()
		return found
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestEvaluation)
	defer cancel()
	value, details, err := compiled.Program.ContextEval(ctx, input)
	if err != nil {
		found["evalError"] = err.Error()
		return found
	}
	found["value"] = typed(value)
	if details != nil && details.ActualCost() != nil {
		found["cost"] = *details.ActualCost()
	}
	return found
}

func (j *judges) compile(given expressionCase) (authenticationcel.CompilationResult, error) {
	var accessor authenticationcel.ExpressionAccessor = &authenticationcel.ClaimMappingExpression{Expression: given.Expr}
	if given.Check == "bool" {
		accessor = &authenticationcel.ClaimValidationCondition{Expression: given.Expr}
	}
	if given.Env == "user" {
		return j.compiler.CompileUserExpression(accessor)
	}
	return j.compiler.CompileClaimsExpression(accessor)
}

func inputOf(given expressionCase) (map[string]any, error) {
	if given.Env == "user" {
		info := &user.DefaultInfo{}
		if given.User != nil {
			info.Name, info.UID = given.User.Username, given.User.UID
			info.Groups, info.Extra = given.User.Groups, given.User.Extra
		}
		value, err := userInput(info)
		return map[string]any{"user": value}, err
	}
	claims := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(given.Claims), &claims); err != nil {
		return nil, err
	}
	value, err := claimsInput(claims)
	return map[string]any{"claims": value}, err
}
