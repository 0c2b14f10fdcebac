package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

func TestWaitsAreFewLinesWhereThereIsNoTerminal(t *testing.T) {
	var errs bytes.Buffer
	line := (cli.New(&console.Console{Stderr: &errs}, &home.Dir{})).NewWaitLine()
	for _, wait := range []struct {
		step  string
		takes int
	}{{"make a container", 4}, {"start the gateway", 5}, {"start a container", 12}} {
		for s := 2; s <= wait.takes; s++ {
			line.Report("podman to "+wait.step, time.Duration(s)*time.Second, false)
		}
		line.Report("podman to "+wait.step, 0, true)
	}
	want := "aileron: waiting for podman to make a container (2s; Ctrl-C ends it)\n" +
		"aileron: waiting for podman to start a container (10s; Ctrl-C ends it)\n"
	if errs.String() != want {
		t.Errorf("stderr is %q, want %q", &errs, want)
	}
}
