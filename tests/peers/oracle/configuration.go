package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

const longestInitialization = 3 * time.Second

type configurationCase struct {
	Config            string                     `json:"config"`
	Token             *string                    `json:"token"`
	Keys              json.RawMessage            `json:"jwks"`
	KeysByIssuer      map[string]json.RawMessage `json:"jwksByIssuer"`
	Now               *float64                   `json:"now"`
	DisallowedIssuers []string                   `json:"disallowedIssuers"`
	Replies           map[string]cannedReply     `json:"http"`
}

// answerConfiguration does what kube-apiserver does with a file and a token, in its order:
// strict decoding, validation of the whole file, then the authenticators one after the other.
func (j *judges) answerConfiguration(line []byte) answer {
	var given configurationCase
	if err := json.Unmarshal(line, &given); err != nil {
		return answer{"oracleError": err.Error()}
	}
	config, err := j.decode(given.Config)
	if err != nil {
		return answer{"strictDecodeError": err.Error(), "authenticated": false}
	}
	faults := []string{}
	for _, fault := range validation.ValidateAuthenticationConfiguration(j.compiler, config, given.DisallowedIssuers) {
		faults = append(faults, fault.Error())
	}
	found := answer{"configErrors": faults, "authenticated": false}
	if len(faults) > 0 || given.Token == nil {
		return found
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tokens, err := j.authenticators(ctx, config, given)
	if err != nil {
		return answer{"oracleError": err.Error()}
	}
	response, ok, err := tokens.AuthenticateToken(ctx, *given.Token)
	if err != nil {
		found["error"] = err.Error()
		return found
	}
	if !ok {
		return found
	}
	groups, extra := response.User.GetGroups(), response.User.GetExtra()
	if groups == nil {
		groups = []string{}
	}
	if extra == nil {
		extra = map[string][]string{}
	}
	found["authenticated"] = true
	found["user"] = answer{
		"username": response.User.GetName(), "uid": response.User.GetUID(), "groups": groups, "extra": extra,
	}
	return found
}

func (j *judges) decode(text string) (*apiserver.AuthenticationConfiguration, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("empty config data")
	}
	object, err := runtime.Decode(j.codecs.UniversalDecoder(), []byte(text))
	if err != nil {
		return nil, err
	}
	config, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("expected AuthenticationConfiguration, got %T", object)
	}
	return config, nil
}

func (j *judges) authenticators(
	ctx context.Context, config *apiserver.AuthenticationConfiguration, given configurationCase,
) (authenticator.Token, error) {
	all := []authenticator.Token{}
	for _, entry := range config.JWT {
		entry = withoutEgress(entry)
		options := oidc.Options{
			JWTAuthenticator:     entry,
			Client:               &http.Client{Transport: issuerOf(entry, given)},
			SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
			DisallowedIssuers:    given.DisallowedIssuers,
			Compiler:             j.compiler,
		}
		if given.Now != nil {
			whole := int64(*given.Now)
			fixed := time.Unix(whole, int64((*given.Now-float64(whole))*1e9))
			setNow(&options, func() time.Time { return fixed })
		}
		one, err := oidc.New(ctx, options)
		if err != nil {
			return nil, err
		}
		if err := awaitHealthy(one.HealthCheck); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return tokenunion.NewFailOnError(all...), nil
}

func awaitHealthy(check func() error) error {
	var err error
	for deadline := time.Now().Add(longestInitialization); time.Now().Before(deadline); time.Sleep(50 * time.Microsecond) {
		if err = check(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the authenticator did not become healthy: %w", err)
}
