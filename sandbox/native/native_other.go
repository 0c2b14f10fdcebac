//go:build !linux

package native

import (
	"io"
	"os"
	"syscall"
)

// Sandbox is one that is sealed, and whose command waits. There is none but on Linux.
type Sandbox struct {
	Stdin          io.WriteCloser
	Stdout, Stderr io.ReadCloser
	Terminal       *os.File
	Unenforced     []string
}

// Start returns a [Refusal].
func Start(Config) (*Sandbox, error) {
	return nil, &Refusal{Reason: "--sandbox=native needs Linux, of whose namespaces it is made",
		Remedy: "use an engine: --sandbox=podman or --sandbox=docker"}
}

// Begin, Resize, Signal, Ended, OutOfMemory and Close are those of Linux.
func (*Sandbox) Begin() error            { return nil }
func (*Sandbox) Resize(uint, uint) error { return nil }
func (*Sandbox) Signal(syscall.Signal)   {}
func (*Sandbox) Ended() <-chan Exit      { return nil }
func (*Sandbox) OutOfMemory() bool       { return false }
func (*Sandbox) Close()                  {}

// Try returns a [Refusal].
func Try(string, string) error {
	_, err := Start(Config{})
	return err
}

// Sweep does nothing.
func Sweep(string) {}

// RunStage runs a process of a sandbox's own.
func RunStage() { os.Exit(1) }
