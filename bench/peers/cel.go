package main

import (
	"context"
	"encoding/json"
	_ "unsafe" // for linkname

	"github.com/google/cel-go/common/types/traits"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/lazy"
	_ "k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// Claims and the user reach CEL as lazy objects of the authenticator's own making.

//go:linkname newClaimsValue k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.newClaimsValue
func newClaimsValue(claims map[string]json.RawMessage) *lazy.MapValue

//go:linkname newUserInfoValue k8s.io/apiserver/plugin/pkg/authenticator/token/oidc.newUserInfoValue
func newUserInfoValue(info user.Info) *lazy.MapValue

// prepareEvaluate makes expressions ready; a run is what they cost for one token. Claims start as JSON with each run,
// as they do with each token: cel-go's objects keep what they have decoded, so an object that is used again would
// measure nothing. With "decoded" they are used again all the same.
func (b *bench) prepareEvaluate(line []byte) (answer, error) {
	var order struct {
		Name    string   `json:"name"`
		Claims  []string `json:"claims"`
		User    []string `json:"user"`
		Payload string   `json:"payload"`
		Decoded bool     `json:"decoded"`
		Info    struct {
			Username string   `json:"username"`
			UID      string   `json:"uid"`
			Groups   []string `json:"groups"`
		} `json:"info"`
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	compiler := authenticationcel.NewDefaultCompiler()
	ofClaims, err := compiled(order.Claims, compiler.CompileClaimsExpression)
	if err != nil {
		return nil, err
	}
	ofUser, err := compiled(order.User, compiler.CompileUserExpression)
	if err != nil {
		return nil, err
	}
	info := &user.DefaultInfo{Name: order.Info.Username, UID: order.Info.UID, Groups: order.Info.Groups}
	claims := func() (traits.Mapper, error) {
		decoded := map[string]json.RawMessage{}
		err := json.Unmarshal([]byte(order.Payload), &decoded)
		return newClaimsValue(decoded), err
	}
	keptClaims, err := claims()
	if err != nil {
		return nil, err
	}
	var keptUser traits.Mapper = newUserInfoValue(info)
	claimsMapper, userMapper := authenticationcel.NewClaimsMapper(ofClaims), authenticationcel.NewUserMapper(ofUser)
	run := func() error {
		ctx := context.Background()
		if len(ofClaims) > 0 {
			if !order.Decoded {
				if keptClaims, err = claims(); err != nil {
					return err
				}
			}
			if _, err := claimsMapper.EvalClaimMappings(ctx, keptClaims); err != nil {
				return err
			}
		}
		if len(ofUser) > 0 {
			if !order.Decoded {
				keptUser = newUserInfoValue(info)
			}
			if _, err := userMapper.EvalUser(ctx, keptUser); err != nil {
				return err
			}
		}
		return nil
	}
	b.prepared[order.Name] = func(count int) error {
		for range count {
			if err := run(); err != nil {
				return err
			}
		}
		return nil
	}
	return answer{}, run()
}

func compiled(
	texts []string, compile func(authenticationcel.ExpressionAccessor) (authenticationcel.CompilationResult, error),
) ([]authenticationcel.CompilationResult, error) {
	found := []authenticationcel.CompilationResult{}
	for _, text := range texts {
		one, err := compile(&authenticationcel.ExtraMappingExpression{Key: "bench.example/x", Expression: text})
		if err != nil {
			// a condition may be of a type that no mapping allows
			one, err = compile(&authenticationcel.ClaimValidationCondition{Expression: text})
		}
		if err != nil {
			one, err = compile(&authenticationcel.UserValidationCondition{Expression: text})
		}
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}
