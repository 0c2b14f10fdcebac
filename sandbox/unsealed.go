package sandbox

import (
	"context"
	"fmt"

	"github.com/ALRubinger/aileron/internal/system"
	"github.com/ALRubinger/aileron/sandbox/carrier"
)

// sealable reports whether this engine can seal a sandbox: its containers must
// reach a unix socket in dir, a directory of this host. An engine in a virtual
// machine or on another host cannot; why is the reason, for people. One that is
// not behind a unix socket itself is tried, with a container of image that is
// never started.
func (e *Engine) sealable(ctx context.Context, image Image, dir string) (ok bool, why string, err error) {
	defer e.Explain(&err)
	started, socket := e.Local()
	if started {
		return true, "", nil // it is ours, and here
	}
	info, err := e.About(ctx)
	if err != nil {
		return false, "", fmt.Errorf("ask the engine where it runs: %w", err)
	}
	if kernel := system.Kernel(); info.Kernel != "" && info.Kernel != kernel {
		return false, fmt.Sprintf("%s runs on another kernel (%s) than this one (%s): "+
			"no unix socket crosses into its containers", e.Kind(), info.Kernel, kernel), nil
	}
	if socket {
		return true, "", nil // a mount that fails all the same ends the start
	}
	seen, err := e.sees(ctx, image, dir)
	if err != nil || seen {
		return seen, "", err
	}
	return false, fmt.Sprintf("%s at %s does not see the session's directory: "+
		"no unix socket crosses into its containers", e.Kind(), e.Address()), nil
}

// sees reports whether the engine sees a directory of this host.
func (e *Engine) sees(ctx context.Context, img Image, dir string) (bool, error) {
	img, _, err := e.pin(ctx, img)
	if err != nil {
		return false, err
	}
	return carrier.Sees(ctx, e.Engine, scratch(img), dir)
}
