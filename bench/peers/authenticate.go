package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

const (
	// What kube-apiserver itself uses for both.
	cacheSeconds          = 10 * time.Second
	longestInitialization = 30 * time.Second
	keysAddress           = "https://keys.bench.invalid/keys"
	wellKnown             = "/.well-known/openid-configuration"
)

// prepareAuthenticate makes kube-apiserver's authenticators of a configuration; they take the tokens in turns.
func (b *bench) prepareAuthenticate(line []byte) (answer, error) {
	var order struct {
		Name   string          `json:"name"`
		Config string          `json:"config"`
		Keys   json.RawMessage `json:"keys"`
		Tokens []string        `json:"tokens"`
		Cache  bool            `json:"cache"`
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	tokens, err := newAuthenticator(order.Config, order.Keys, order.Cache)
	if err != nil {
		return nil, err
	}
	next := 0
	b.prepared[order.Name] = func(count int) error {
		for range count {
			_, ok, err := tokens.AuthenticateToken(context.Background(), order.Tokens[next])
			if err != nil || !ok {
				return fmt.Errorf("a token was refused: %w", err)
			}
			next = (next + 1) % len(order.Tokens)
		}
		return nil
	}
	response, _, err := tokens.AuthenticateToken(context.Background(), order.Tokens[0])
	if err != nil {
		return nil, err
	}
	return answer{"username": response.User.GetName(), "groups": response.User.GetGroups()}, nil
}

// prepareCheck decodes and validates a file as kube-apiserver does at its start.
func (b *bench) prepareCheck(line []byte) (answer, error) {
	var order struct{ Name, Config string }
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	compiler := authenticationcel.NewDefaultCompiler()
	b.prepared[order.Name] = func(count int) error {
		for range count {
			if _, err := checked(order.Config, compiler); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := checked(order.Config, compiler)
	return answer{}, err
}

func newAuthenticator(text string, keys []byte, cached bool) (authenticator.Token, error) {
	compiler := authenticationcel.NewDefaultCompiler()
	config, err := checked(text, compiler)
	if err != nil {
		return nil, err
	}
	all := []authenticator.Token{}
	for _, entry := range config.JWT {
		one, err := oidc.New(context.Background(), oidc.Options{
			JWTAuthenticator:     entry,
			Client:               &http.Client{Transport: &cannedIssuer{entry.Issuer.URL, string(keys)}},
			SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
			Compiler:             compiler,
		})
		if err != nil {
			return nil, err
		}
		if err := awaitHealthy(one.HealthCheck); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	var tokens authenticator.Token = tokenunion.NewFailOnError(all...)
	if cached {
		tokens = tokencache.New(tokens, false, cacheSeconds, cacheSeconds)
	}
	return tokens, nil
}

func checked(text string, compiler authenticationcel.Compiler) (*apiserver.AuthenticationConfiguration, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	object, err := runtime.Decode(codecs.UniversalDecoder(), []byte(text))
	if err != nil {
		return nil, err
	}
	config, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("expected AuthenticationConfiguration, got %T", object)
	}
	return config, validation.ValidateAuthenticationConfiguration(compiler, config, nil).ToAggregate()
}

func awaitHealthy(check func() error) error {
	var err error
	for deadline := time.Now().Add(longestInitialization); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err = check(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the authenticator did not become healthy: %w", err)
}

// cannedIssuer is the network: discovery and keys, fetched once and kept by the authenticator as from a real issuer.
type cannedIssuer struct{ issuer, keys string }

func (c *cannedIssuer) RoundTrip(request *http.Request) (*http.Response, error) {
	body := c.keys
	if strings.HasSuffix(request.URL.Path, wellKnown) {
		document, err := json.Marshal(map[string]string{"issuer": c.issuer, "jwks_uri": keysAddress})
		if err != nil {
			return nil, err
		}
		body = string(document)
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Status:     "200 OK",
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(body)),
		Request:    request,
	}, nil
}
