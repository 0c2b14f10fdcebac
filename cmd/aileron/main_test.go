package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ALRubinger/aileron/audit"
)

// TestMain puts three programs on the PATH of the tests: aileron, as a process
// of its own whose vaults are cheap to open, and two helpers of the stories.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"aileron":    func() { testOnlyWorkFactor = "10"; main() },
		"audit-rows": func() { exitOn(writeRows(os.Stdin)) },
		"get":        func() { exitOn(get(os.Args[1:])) },
	})
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeRows is the program audit-rows: it appends the JSON rows of its input to
// the audit log of AILERON_HOME, so that a story can tell of a log with times
// and ids that are always the same.
func writeRows(r io.Reader) error {
	l, err := audit.Open(filepath.Join(os.Getenv("AILERON_HOME"), "audit.db"), audit.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	for dec := json.NewDecoder(r); ; {
		var row audit.Row
		if err := dec.Decode(&row); errors.Is(err, io.EOF) {
			return l.Close()
		} else if err != nil {
			return err
		}
		if _, err := l.Append(context.Background(), row); err != nil {
			return err
		}
	}
}

// get is the program get: a client that uses the proxy and the roots of its
// environment, as any Go program does. It prints the status and the body.
func get(urls []string) error {
	for _, url := range urls {
		res, err := http.Get(url) //nolint:gosec,noctx // the story's own URL
		if err != nil {
			return err
		}
		defer res.Body.Close()
		fmt.Println(res.StatusCode)
		if _, err := io.Copy(os.Stdout, res.Body); err != nil {
			return err
		}
	}
	return nil
}
