// Execprobe makes requests as any program with client-go does: kubeconfig, exec plugin, request.
//
//	execprobe KUBECONFIG PATH…
//
// For each path it prints one line of JSON: the status of the answer, or the error that came instead.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const longestRequest = 30 * time.Second

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: execprobe KUBECONFIG PATH…")
		os.Exit(2)
	}
	written := json.NewEncoder(os.Stdout)
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		_ = written.Encode(map[string]any{"error": err.Error()})
		return
	}
	config.Timeout = longestRequest
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		_ = written.Encode(map[string]any{"error": err.Error()})
		return
	}
	for _, path := range os.Args[2:] {
		status, err := get(client, config.Host+path)
		if err != nil {
			_ = written.Encode(map[string]any{"error": err.Error()})
			continue
		}
		_ = written.Encode(map[string]any{"status": status})
	}
}

func get(client *http.Client, address string) (int, error) {
	answer, err := client.Get(address)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
