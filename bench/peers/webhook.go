package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
)

const mostBytesPerReview = 1 << 20

// serveWebhook is the least that a webhook on kube-apiserver's authenticator needs: TLS, HTTP/1.1 and HTTP/2.
func serveWebhook(arguments []string) error {
	flags := flag.NewFlagSet("webhook", flag.ContinueOnError)
	config := flags.String("config", "", "an AuthenticationConfiguration")
	keys := flags.String("keys", "", "the key set of every issuer")
	address := flags.String("listen", "127.0.0.1:0", "")
	certificate := flags.String("tls-cert", "", "")
	key := flags.String("tls-key", "", "")
	cached := flags.Bool("cache", false, "remember results as kube-apiserver does")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	text, err := os.ReadFile(*config)
	if err != nil {
		return err
	}
	keySet, err := os.ReadFile(*keys)
	if err != nil {
		return err
	}
	tokens, err := newAuthenticator(string(text), keySet, *cached)
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr:              *address,
		Handler:           reviews(tokens),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	return server.ListenAndServeTLS(*certificate, *key)
}

func reviews(tokens authenticator.Token) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, mostBytesPerReview)).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answered := authenticationv1.TokenReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
			Status:   statusOf(request.Context(), tokens, review.Spec.Token),
		}
		body, err := json.Marshal(answered)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

func statusOf(ctx context.Context, tokens authenticator.Token, token string) authenticationv1.TokenReviewStatus {
	response, ok, err := tokens.AuthenticateToken(ctx, token)
	if err != nil {
		return authenticationv1.TokenReviewStatus{Error: fmt.Sprint(err)}
	}
	if !ok {
		return authenticationv1.TokenReviewStatus{}
	}
	extra := map[string]authenticationv1.ExtraValue{}
	for key, values := range response.User.GetExtra() {
		extra[key] = values
	}
	return authenticationv1.TokenReviewStatus{
		Authenticated: true,
		User: authenticationv1.UserInfo{
			Username: response.User.GetName(),
			UID:      response.User.GetUID(),
			Groups:   response.User.GetGroups(),
			Extra:    extra,
		},
	}
}
