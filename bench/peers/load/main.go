// A load generator for bench/serve.py: TokenReviews over TLS and keep-alive, HTTP/1.1 or HTTP/2.
//
//	load -address 127.0.0.1:8443 -ca ca.pem -bodies FILE [-h2] [-connections 8] [-requests 10000] [-rate 0]
//
// Each line of FILE is the body of a request; they are sent in turns. With a rate, requests are due at fixed moments
// and a latency is counted from the moment that its request was due, so that a server that stalls is seen to. "late" is
// what of it is nobody's but the machine's: how much later than asked for this program was woken, with nothing else to
// do. One line of JSON on standard output says what came of it.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const timeout = 30 * time.Second

var wanted = []byte(`"authenticated":true`)

// An asker sends one body and returns the body of the answer.
type asker func(body []byte) ([]byte, error)

func main() {
	address := flag.String("address", "", "host:port")
	authority := flag.String("ca", "", "PEM file of whom to trust")
	file := flag.String("bodies", "", "one body a line")
	h2 := flag.Bool("h2", false, "HTTP/2 instead of HTTP/1.1")
	connections := flag.Int("connections", 8, "at the same time")
	streams := flag.Int("streams", 4, "requests under way on one connection, HTTP/2 only")
	requests := flag.Int("requests", 10000, "in all")
	first := flag.Int("first", 0, "the line to begin with")
	rate := flag.Float64("rate", 0, "requests a second; 0: as many as there can be")
	flag.Parse()

	bodies := lines(*file)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(must(os.ReadFile(*authority)))
	settings := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}

	var askers []asker
	for range *connections {
		if *h2 {
			ask := overHTTP2(*address, settings)
			for range *streams {
				askers = append(askers, ask)
			}
		} else {
			askers = append(askers, overHTTP1(*address, settings))
		}
	}
	if *rate > 0 {
		// A latency is that of a request on a connection that is there: handshakes come before.
		for number := 0; number < len(askers); number += len(askers) / *connections {
			must(askers[number](bodies[*first%len(bodies)]))
		}
	}
	latencies, late := make([]time.Duration, *requests), make([]time.Duration, *requests)
	var next, wrong atomic.Int64
	var example atomic.Value
	var done sync.WaitGroup
	begun := time.Now()
	for _, ask := range askers {
		done.Add(1)
		go func() {
			defer done.Done()
			for {
				number := int(next.Add(1)) - 1
				if number >= *requests {
					return
				}
				due := time.Now()
				if *rate > 0 {
					due = begun.Add(time.Duration(float64(number) / *rate * float64(time.Second)))
					if early := time.Until(due); early > 0 {
						time.Sleep(early)
						late[number] = time.Since(due)
					}
				}
				answer, err := ask(bodies[(*first+number)%len(bodies)])
				latencies[number] = time.Since(due)
				if err != nil || !bytes.Contains(answer, wanted) {
					wrong.Add(1)
					example.Store(fmt.Sprintf("%v %.200s", err, answer))
					if err != nil {
						return
					}
				}
			}
		}()
	}
	done.Wait()
	seconds := time.Since(begun).Seconds()
	slices.Sort(latencies)
	// Only those that waited for their moment: the others were sent as soon as a connection was free.
	late = slices.DeleteFunc(late, func(one time.Duration) bool { return one == 0 })
	slices.Sort(late)
	late = append(late, 0)
	told, _ := example.Load().(string)
	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{
		"requests": *requests,
		"seconds":  seconds,
		"wrong":    wrong.Load(),
		"example":  told,
		"p50":      latencies[*requests/2].Seconds(),
		"p99":      latencies[*requests*99/100].Seconds(),
		"late":     late[(len(late)-1)*99/100].Seconds(),
	}))
}

func overHTTP1(address string, settings *tls.Config) asker {
	connection := must(tls.Dial("tcp", address, settings))
	reader := bufio.NewReaderSize(connection, 64<<10)
	head := "POST / HTTP/1.1\r\nhost: " + address + "\r\ncontent-type: application/json\r\ncontent-length: "
	var message, answer []byte
	return func(body []byte) ([]byte, error) {
		message = append(message[:0], head...)
		message = strconv.AppendInt(message, int64(len(body)), 10)
		message = append(message, "\r\n\r\n"...)
		message = append(message, body...)
		connection.SetDeadline(time.Now().Add(timeout))
		if _, err := connection.Write(message); err != nil {
			return nil, err
		}
		length := -1
		for {
			line, err := reader.ReadSlice('\n')
			if err != nil {
				return nil, err
			}
			line = bytes.TrimRight(line, "\r\n")
			if len(line) == 0 {
				break
			}
			if name, value, found := bytes.Cut(line, []byte(":")); found && bytes.EqualFold(name, []byte("content-length")) {
				length = must(strconv.Atoi(string(bytes.TrimSpace(value))))
			}
		}
		if length < 0 {
			return nil, fmt.Errorf("an answer without content-length")
		}
		if cap(answer) < length {
			answer = make([]byte, length)
		}
		answer = answer[:length]
		_, err := io.ReadFull(reader, answer)
		return answer, err
	}
}

func overHTTP2(address string, settings *tls.Config) asker {
	transport := &http.Transport{TLSClientConfig: settings.Clone(), ForceAttemptHTTP2: true, DisableCompression: true}
	client := &http.Client{Transport: transport, Timeout: timeout}
	return func(body []byte) ([]byte, error) {
		answer, err := client.Post("https://"+address+"/", "application/json", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		if answer.ProtoMajor != 2 {
			return nil, fmt.Errorf("expected HTTP/2, not %s", answer.Proto)
		}
		return io.ReadAll(answer.Body)
	}
}

func lines(path string) [][]byte {
	return bytes.Split(bytes.TrimSpace(must(os.ReadFile(path))), []byte("\n"))
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	return value
}
