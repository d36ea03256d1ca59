// Dex on loopback, with one client and one user, kept in memory.
//
//	dex ISSUER CERT KEY CLIENT_ID CLIENT_SECRET REDIRECT EMAIL PASSWORD ROTATE_SECONDS
//
// ISSUER is https://127.0.0.1:PORT/…; it listens there.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(given []string) error {
	if len(given) != 9 {
		return fmt.Errorf("nine arguments are needed, %d came", len(given))
	}
	issuer, certificate, key := given[0], given[1], given[2]
	seconds, err := strconv.Atoi(given[8])
	if err != nil {
		return err
	}
	address, err := url.Parse(issuer)
	if err != nil {
		return err
	}
	hashed, err := bcrypt.GenerateFromPassword([]byte(given[7]), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	logger := logrus.New()
	logger.SetOutput(os.Stderr)
	kept := storage.WithStaticPasswords(
		storage.WithStaticClients(memory.New(logger), []storage.Client{{
			ID: given[3], Secret: given[4], RedirectURIs: []string{given[5]}, Name: "kubernetes",
		}}),
		[]storage.Password{{Email: given[6], Hash: hashed, Username: "jane", UserID: "42"}},
		logger,
	)
	kept = storage.WithStaticConnectors(kept, []storage.Connector{
		{ID: server.LocalConnector, Name: "Email", Type: server.LocalConnector},
	})
	handler, err := server.NewServer(context.Background(), server.Config{
		Issuer:             issuer,
		Storage:            kept,
		SkipApprovalScreen: true,
		PasswordConnector:  server.LocalConnector,
		RotateKeysAfter:    time.Duration(seconds) * time.Second,
		IDTokensValidFor:   time.Duration(seconds) * time.Second * 4,
		Web:                server.WebConfig{WebFS: web.FS()},
		Logger:             logger,
		PrometheusRegistry: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	return http.ListenAndServeTLS(address.Host, certificate, key, handler)
}
