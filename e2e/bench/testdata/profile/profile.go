package main

import (
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

// The bench builds aileron with this file laid over it (go build -overlay),
// for a CPU profile of the real program: SIGUSR1 begins one, SIGUSR2 ends it.
// No binary that anyone installs has it.
func init() {
	path := os.Getenv("AILERON_BENCH_PROFILE")
	if path == "" {
		return
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		var f *os.File
		for sig := range signals {
			if sig == syscall.SIGUSR1 {
				f, _ = os.Create(path + ".part")
				_ = pprof.StartCPUProfile(f)
				continue
			}
			pprof.StopCPUProfile()
			_ = f.Close()
			_ = os.Rename(path+".part", path)
		}
	}()
}
