// Runs the Python that it carries, which is unpacked where the first argument says.
//
//	standalone-python DIRECTORY ARGUMENTS…
package main

import (
	"fmt"
	"os"

	"github.com/kluctl/go-embed-python/python"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "a directory is needed")
		os.Exit(2)
	}
	carried, err := python.NewEmbeddedPythonWithTmpDir(os.Args[1], false)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	command, err := carried.PythonCmd(os.Args[2:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
