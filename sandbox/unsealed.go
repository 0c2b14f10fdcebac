package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/system"
	"github.com/ALRubinger/aileron/sandbox/engine"
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

// sees mounts a directory of this host into a container, and reports whether a
// file of it is there.
func (e *Engine) sees(ctx context.Context, img Image, dir string) (bool, error) {
	img, _, err := e.pin(ctx, img)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("try the engine's mounts: %w", err)
	}
	mark, err := os.CreateTemp(dir, "mark-")
	if err != nil {
		return false, fmt.Errorf("try the engine's mounts: %w", err)
	}
	_ = mark.Close()
	defer os.Remove(mark.Name())
	config := scratch(img)
	config.Mounts = []engine.Mount{{Source: dir, Target: "/host"}}
	id, err := e.CreateScratch(ctx, config)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, nil // Docker refuses a mount whose source it does not see
	}
	defer func() { _ = e.Remove(context.WithoutCancel(ctx), id) }()
	_, err = e.Stat(ctx, id, "/host/"+filepath.Base(mark.Name()))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
