package main

import (
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
)

// The bench builds aileron with this file laid over it (go build -overlay),
// for profiles of the real program: SIGUSR1 begins one of the CPU, SIGUSR2
// ends it, and adds the live heap and the goroutines. No binary that anyone
// installs has it.
func init() {
	path := os.Getenv("AILERON_BENCH_PROFILE")
	if path == "" {
		return
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		var cpu *os.File
		for sig := range signals {
			if sig == syscall.SIGUSR1 {
				cpu, _ = os.Create(path + ".part")
				_ = pprof.StartCPUProfile(cpu)
				continue
			}
			pprof.StopCPUProfile()
			_ = cpu.Close()
			runtime.GC()
			for _, name := range []string{"heap", "goroutine"} {
				f, err := os.Create(path + "." + name)
				if err == nil {
					_ = pprof.Lookup(name).WriteTo(f, 0)
					_ = f.Close()
				}
			}
			_ = os.Rename(path+".part", path)
		}
	}()
}
