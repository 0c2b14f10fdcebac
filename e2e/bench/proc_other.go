//go:build !linux

package main

import (
	"errors"
	"time"
)

var errNoProc = errors.New("the bench reads /proc: it measures on Linux only")

func cpuTime(int) (time.Duration, error)           { return 0, errNoProc }
func memory(int) (resident, peak int64, err error) { return 0, 0, errNoProc }
func resetPeak(int) error                          { return errNoProc }
func machine() (cpu, kernel string)                { return "unknown CPU", "unknown kernel" }
func loadAverage() string                          { return "unknown" }
