// Package panics logs where a panic began, without its value, which may quote what a
// client sent or what the vault holds. Call [Log] in the deferred function that
// recovers:
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

// maxFrames bounds the calls that are described.
const maxFrames = 12

// Log logs that a panic was recovered in a place, with the functions and lines that
// led to it. Call it in a deferred function, after recover. A nil log discards.
func Log(log *slog.Logger, in string, attrs ...any) {
	if log != nil {
		log.Error("panic", append([]any{"in", in, "at", strings.Join(Origin(), " < ")}, attrs...)...)
	}
}

// Origin returns the calls that led to the panic that is being recovered, the
// innermost first, each as "function file:line". Call it in a deferred function.
func Origin() []string {
	pcs := make([]uintptr, 128)
	pcs = pcs[:runtime.Callers(2, pcs)]
	var calls []string
	for frames := runtime.CallersFrames(pcs); ; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			calls = calls[:0] // the frames that follow led to the first panic
		case len(calls) == 0 && strings.HasPrefix(frame.Function, "runtime."): // raises the panic of the origin
		case len(calls) < maxFrames:
			calls = append(calls, short(frame.Function)+" "+path.Base(frame.File)+":"+strconv.Itoa(frame.Line))
		}
		if !more {
			return calls
		}
	}
}

// short returns a function's name without the path of its package.
func short(function string) string { return function[strings.LastIndexByte(function, '/')+1:] }
