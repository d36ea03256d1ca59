package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/plugin/pkg/client/auth/exec"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"
)

// answersAtOnce is a transport without a network: what is timed is what is around it.
type answersAtOnce struct{ response http.Response }

func (a *answersAtOnce) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Authorization") == "" {
		return nil, fmt.Errorf("a request without its credential")
	}
	return &a.response, nil
}

// withCredentials is client-go's exec authenticator around such a transport.
func withCredentials(command string) (http.RoundTripper, error) {
	plugins, err := exec.GetAuthenticator(&api.ExecConfig{
		Command:         command,
		APIVersion:      "client.authentication.k8s.io/v1",
		InteractiveMode: api.NeverExecInteractiveMode,
	}, nil)
	if err != nil {
		return nil, err
	}
	config := &transport.Config{}
	if err := plugins.UpdateTransportConfig(config); err != nil {
		return nil, err
	}
	return config.WrapTransport(&answersAtOnce{http.Response{StatusCode: http.StatusOK}}), nil
}

func aRequest() (*http.Request, error) {
	return http.NewRequest(http.MethodGet, "https://127.0.0.1:6443/api", nil)
}

// prepareExec: with a plugin whose credential lasts, a run is the hot path; with one whose credential has expired, each
// run starts the plugin.
func (b *bench) prepareExec(line []byte) (answer, error) {
	var order struct{ Name, Command string }
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	client, err := withCredentials(order.Command)
	if err != nil {
		return nil, err
	}
	request, err := aRequest()
	if err != nil {
		return nil, err
	}
	b.prepared[order.Name] = func(count int) error {
		for range count {
			request.Header.Del("Authorization") // the same request again, which has none yet
			if _, err := client.RoundTrip(request); err != nil {
				return err
			}
		}
		return nil
	}
	return answer{}, b.prepared[order.Name](1)
}

// storm has so many requests ask for a credential at once, when there is none yet. client-go keeps an authenticator for
// each command, so the command must be one that was not used before.
func (b *bench) storm(line []byte) (answer, error) {
	var order struct {
		Command string
		Callers int
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	client, err := withCredentials(order.Command)
	if err != nil {
		return nil, err
	}
	failures := make(chan error, order.Callers)
	begun := time.Now()
	for range order.Callers {
		go func() {
			request, err := aRequest()
			if err == nil {
				_, err = client.RoundTrip(request)
			}
			failures <- err
		}()
	}
	for range order.Callers {
		if err := <-failures; err != nil {
			return nil, err
		}
	}
	return answer{"seconds": time.Since(begun).Seconds()}, nil
}
