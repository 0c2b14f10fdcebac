// Package panics describes where a panic came from, without its value: the
// value of a panic may quote what a client sent or what a vault holds.
//
//	defer func() {
//		if recover() != nil {
//			panics.Log(log, "an exchange")
//		}
//	}()
package panics

import (
	"log/slog"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// maxFrames is how many calls below the panic are described.
const maxFrames = 12

// Log logs that a panic was recovered in a place, with the functions and lines
// that led to it. It is for a deferred function, after recover. A nil log
// discards.
func Log(log *slog.Logger, in string, attrs ...any) {
	if log != nil {
		log.Error("panic", append([]any{"in", in, "at", strings.Join(Origin(), " < ")}, attrs...)...)
	}
}

// Origin returns the calls at whose top the panic began that is being recovered,
// the innermost first, each as "function file:line". It is for a deferred
// function.
func Origin() []string {
	pcs := make([]uintptr, 128)
	pcs = pcs[:runtime.Callers(2, pcs)]
	var calls []string
	for frames := runtime.CallersFrames(pcs); ; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			calls = calls[:0] // what follows is what panicked first
		case len(calls) == 0 && strings.HasPrefix(frame.Function, "runtime."): // raises what the origin did
		case len(calls) < maxFrames:
			calls = append(calls, short(frame.Function)+" "+path.Base(frame.File)+":"+strconv.Itoa(frame.Line))
		}
		if !more {
			return calls
		}
	}
}

// short is a function's name without the path of its package.
func short(function string) string { return function[strings.LastIndexByte(function, '/')+1:] }
