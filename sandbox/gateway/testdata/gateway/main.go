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

	"github.com/ALRubinger/aileron/internal/uplink"
	"github.com/ALRubinger/aileron/sandbox/gateway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg := gateway.Config{Proxy: os.Args[1], Redirect: os.Args[2], Ready: os.Stdout, Log: log}
	cfg.Connections, _ = strconv.Atoi(os.Getenv("CONNECTIONS"))
	cfg.Idle, _ = time.ParseDuration(os.Getenv("IDLE"))
	cfg.Pod = os.Getenv("POD") != ""
	if key := os.Getenv("UPLINK_KEY"); key != "" {
		cfg.Relay = &gateway.Relay{Listen: ":8443", Public: os.Getenv("PUBLIC")}
		if cfg.Relay.Plane = os.Getenv("UPLINK_DIAL"); cfg.Relay.Plane != "" {
			cfg.Relay.Listen = ""
		}
		cfg.Relay.Key, _ = uplink.ParseKey(key)
		cfg.Relay.Again, _ = time.ParseDuration(os.Getenv("AGAIN"))
	}
	run := gateway.Run
	if os.Getenv("CHECK") != "" {
		run = gateway.Check
		if patience, err := time.ParseDuration(os.Getenv("CHECK")); err == nil {
			time.AfterFunc(patience, stop)
		}
	}
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}
