// Bench-peer is Kubernetes' own code, made to be timed: one order per line in, one answer per line out.
//
// An order names what to do ("do") and, where something was prepared before, its "name". Times are in seconds; "cpu" is
// what the kernel says that this process used, its garbage collection included.
//
//	bench-peer             answers orders
//	bench-peer webhook …   serves TokenReviews (webhook.go)
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

const mostBytesPerOrder = 64 << 20

// A prepared piece of work: what is timed, and how often it was asked for.
type work func(count int) error

type bench struct {
	prepared map[string]work
}

type answer map[string]any

// Each order decodes the fields that it knows from the whole line.
var orders = map[string]func(*bench, []byte) (answer, error){
	"versions":             func(*bench, []byte) (answer, error) { return versions(), nil },
	"time":                 (*bench).time,
	"prepare authenticate": (*bench).prepareAuthenticate,
	"prepare check":        (*bench).prepareCheck,
	"prepare evaluate":     (*bench).prepareEvaluate,
	"prepare exec":         (*bench).prepareExec,
	"storm":                (*bench).storm,
	"load":                 (*bench).load,
}

func main() {
	silenceLogs()
	if len(os.Args) > 1 && os.Args[1] == "webhook" {
		if err := serveWebhook(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench-peer:", err)
			os.Exit(1)
		}
		return
	}
	state := &bench{prepared: map[string]work{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), mostBytesPerOrder)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		found, err := state.answer(lines.Bytes())
		if err != nil {
			found = answer{"error": err.Error()}
		}
		if err := out.Encode(found); err != nil {
			os.Exit(1)
		}
	}
}

func (b *bench) answer(line []byte) (answer, error) {
	var order struct {
		Do string `json:"do"`
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	do, known := orders[order.Do]
	if !known {
		return nil, fmt.Errorf("no such order: %q", order.Do)
	}
	return do(b, line)
}

// time runs what was prepared, count times.
func (b *bench) time(line []byte) (answer, error) {
	var order struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	run, known := b.prepared[order.Name]
	if !known {
		return nil, fmt.Errorf("nothing was prepared as %q", order.Name)
	}
	cpu, begun := processorSeconds(), time.Now()
	if err := run(order.Count); err != nil {
		return nil, err
	}
	return answer{"seconds": time.Since(begun).Seconds(), "cpu": processorSeconds() - cpu}, nil
}

func processorSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func versions() answer {
	found := answer{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	found["go"] = info.GoVersion
	for _, dependency := range info.Deps {
		switch dependency.Path {
		case "k8s.io/apiserver", "k8s.io/client-go", "github.com/google/cel-go", "gopkg.in/go-jose/go-jose.v2":
			found[dependency.Path] = dependency.Version
		}
	}
	return found
}

func silenceLogs() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("alsologtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
}
