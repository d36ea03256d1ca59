package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// load asks a webhook over so many connections, each with one request at a time, and counts only right answers.
// Requests are written and answers read by hand: the client shares the machine with what it measures.
func (b *bench) load(line []byte) (answer, error) {
	var order struct {
		Address     string   `json:"address"`
		Authority   string   `json:"authority"`
		Requests    []string `json:"requests"`
		Connections int      `json:"connections"`
		Count       int      `json:"count"`
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(order.Authority)) {
		return nil, fmt.Errorf("the authority is no PEM certificate")
	}
	config := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	connections := make([]*tls.Conn, order.Connections)
	for number := range connections {
		connection, err := tls.Dial("tcp", order.Address, config)
		if err != nil {
			return nil, err
		}
		defer connection.Close()
		connections[number] = connection
	}
	waits := make([][]time.Duration, len(connections))
	faults := make([]error, len(connections))
	var running sync.WaitGroup
	begun := time.Now()
	for number, connection := range connections {
		running.Go(func() {
			reader := bufio.NewReaderSize(connection, 1<<16)
			for at := number; at < order.Count; at += len(connections) {
				asked := time.Now()
				if err := ask(connection, reader, order.Requests[at%len(order.Requests)]); err != nil {
					faults[number] = err
					return
				}
				waits[number] = append(waits[number], time.Since(asked))
			}
		})
	}
	running.Wait()
	taken := time.Since(begun)
	for _, err := range faults {
		if err != nil {
			return nil, err
		}
	}
	all := slices.Concat(waits...)
	slices.Sort(all)
	return answer{
		"rate": float64(len(all)) / taken.Seconds(),
		"p50":  all[len(all)/2].Seconds(),
		"p99":  all[len(all)*99/100].Seconds(),
	}, nil
}

var accepted = []byte(`"authenticated":true`)

func ask(connection io.Writer, reader *bufio.Reader, request string) error {
	if _, err := io.WriteString(connection, request); err != nil {
		return err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if !bytes.Contains(body, accepted) {
		return fmt.Errorf("a wrong answer: %s %.300s", response.Status, body)
	}
	return response.Body.Close()
}
