// Oracle answers recorded cases from Kubernetes' own code: one case per line in, one answer per line out.
//
// A case with "expr" is a CEL expression of the authentication environment; one with "config" is an
// AuthenticationConfiguration, mostly with a token; {"versions": true} asks which modules answer.
// The format is that of tests/recorded.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// The longest recorded case has about 300,000 characters.
const mostBytesPerCase = 16 << 20

type answer map[string]any

func main() {
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	_ = klogFlags.Set("logtostderr", "false")
	_ = klogFlags.Set("alsologtostderr", "false")
	_ = klogFlags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)

	judges := newJudges()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), mostBytesPerCase)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		written, err := json.Marshal(judges.answerSafely(lines.Bytes()))
		if err != nil {
			written, _ = json.Marshal(answer{"oracleError": err.Error()})
		}
		_, _ = out.Write(append(written, '\n'))
		_ = out.Flush() // the other side waits for every answer
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// answerSafely turns a panic of the code under examination into an answer: it is one, after all.
func (j *judges) answerSafely(line []byte) (given answer) {
	defer func() {
		if fault := recover(); fault != nil {
			given = answer{"panic": fmt.Sprint(fault)}
		}
	}()
	var kind struct {
		Expr     *string `json:"expr"`
		Config   *string `json:"config"`
		Versions bool    `json:"versions"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return answer{"oracleError": "the case is not JSON: " + err.Error()}
	}
	switch {
	case kind.Expr != nil:
		return j.answerExpression(line)
	case kind.Config != nil:
		return j.answerConfiguration(line)
	case kind.Versions:
		return versions()
	}
	return answer{"oracleError": "a case needs expr or config"}
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
		case "k8s.io/apiserver", "k8s.io/apimachinery", "github.com/google/cel-go", "github.com/coreos/go-oidc",
			"gopkg.in/go-jose/go-jose.v2", "gopkg.in/square/go-jose.v2", "sigs.k8s.io/yaml", "sigs.k8s.io/json":
			found[dependency.Path] = dependency.Version
		}
	}
	return found
}
