package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/native"
	"github.com/ALRubinger/aileron/vault"
)

// keyringWaitEnv is the variable with how long the aileron of the tests waits for a keyring.
const keyringWaitEnv = "AILERON_TEST_KEYRING_WAIT"

// patience is as long as only a defect takes, on a busy machine too.
var patience = must.Patience(5 * time.Minute)

// endAtOnce is for the environment of aileron as a process of its own: a program that is built with -race sleeps for a
// second before it ends, unless it is asked not to.
const endAtOnce = "GORACE=atexit_sleep_ms=0"

// TestMain puts three programs on the PATH of the tests: aileron, as a process
// of its own whose vaults are cheap to open, and three helpers of the stories.
func TestMain(m *testing.M) {
	name, value, _ := strings.Cut(endAtOnce, "=")
	exitOn(os.Setenv(name, value)) // for what tests start
	if native.IsStage() {          // of a native sandbox that a test, or the aileron of one, tries to make
		native.RunStage()
	}
	testscript.Main(tests{m}, map[string]func(){
		"aileron": func() {
			testOnlyWorkFactor = "10"
			if wait, err := time.ParseDuration(os.Getenv(keyringWaitEnv)); err == nil {
				vault.TestOnlyKeyringWait(wait)
			}
			main()
		},
		"audit-rows": func() { exitOn(writeRows(os.Stdin)) },
		"get":        func() { exitOn(get(os.Args[1:])) },
		"call":       func() { exitOn(call(os.Args[1:])) },
	})
}

// tests are those of this package. Some run a session in their own process, which would limit its memory to what a
// session may use, for all that follow: most of the time was the collector's.
type tests struct{ *testing.M }

func (t tests) Run() int {
	debug.SetMemoryLimit(math.MaxInt64 - 1) // a limit that is set is kept
	return t.M.Run()
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeRows is the program audit-rows: it appends the JSON rows of its input to
// the audit log of AILERON_HOME, so that a story can have a log with times
// and ids that never change.
func writeRows(r io.Reader) error {
	home := os.Getenv("AILERON_HOME")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	l, err := audit.Open(filepath.Join(home, "audit.db"), audit.Options{})
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(r); err == nil; {
		var row audit.Row
		if err = dec.Decode(&row); err == nil {
			_, err = l.Append(context.Background(), row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, l.Close())
}

// get is the program get: a client that uses the proxy and the roots of its
// environment, as any Go program does. It prints the status and the body.
func get(urls []string) error {
	for _, url := range urls {
		res, err := http.Get(url)
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

// call is the program call: it posts its second argument to an endpoint of the session's API, as the command of a
// connector does, and prints the status.
func call(args []string) error {
	url := os.Getenv("AILERON_API_URL") + "/" + args[0]
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(args[1]))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("AILERON_TOKEN"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode)
	return nil
}
