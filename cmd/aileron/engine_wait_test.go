package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

func TestWaitsAreFewLinesWhereThereIsNoTerminal(t *testing.T) {
	var errs bytes.Buffer
	line := (&app{stderr: &errs, getenv: func(string) string { return "" }}).newWaitLine()
	for _, wait := range []struct {
		step  string
		takes int
	}{{"make a container", 4}, {"start the gateway", 5}, {"start a container", 12}} {
		for s := 2; s <= wait.takes; s++ {
			line.report(engine.Wait{Engine: "podman", Step: wait.step, For: time.Duration(s) * time.Second})
		}
		line.report(engine.Wait{Engine: "podman", Step: wait.step, Over: true})
	}
	want := "aileron: waiting for podman to make a container (2s; Ctrl-C ends it)\n" +
		"aileron: waiting for podman to start a container (10s; Ctrl-C ends it)\n"
	if errs.String() != want {
		t.Errorf("stderr is %q, want %q", &errs, want)
	}
}
