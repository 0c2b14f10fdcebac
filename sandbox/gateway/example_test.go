//go:build linux

package gateway_test

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/ALRubinger/aileron/sandbox/gateway"
)

// A whole gateway, started as root in a network namespace of its own. It prints
// "ready" when a sandbox may join the namespace.
func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := gateway.Run(ctx, gateway.Config{Ready: os.Stdout, Log: log}); err != nil {
		log.Error("the gateway ended", "error", err)
	}
}
