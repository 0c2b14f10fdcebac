// Command gateway is the gateway alone, built without cgo for the tests: a
// test binary with the race detector is never static.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/sandbox/gateway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg := gateway.Config{Proxy: os.Args[1], Redirect: os.Args[2], Ready: os.Stdout, Log: log}
	cfg.Connections, _ = strconv.Atoi(os.Getenv("CONNECTIONS"))
	cfg.Idle, _ = time.ParseDuration(os.Getenv("IDLE"))
	if err := gateway.Run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}
