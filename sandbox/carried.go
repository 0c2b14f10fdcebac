package sandbox

import (
	"context"
	"fmt"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/carrier"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// carried is how an engine that no socket of this host reaches seals a sandbox: its sockets are in a volume of the
// engine, and a container carries their connections to this host. See package carrier.
type carried struct {
	why    string // no socket reaches the engine, for people
	binary string // a static aileron for the engine's machine
	arch   string // of that machine
	image  string // by its id; "" before it is looked up
	files  string // a directory of this host in which the engine sees the files of a sandbox; "" is that of temporary ones
}

// RunStage runs what this program is where a sandbox has started it, and does not return then.
func RunStage() {
	switch {
	case native.IsStage():
		native.RunStage()
	case carrier.IsCarrier():
		carrier.Main()
	}
}

// carriable finds out how to seal a sandbox although no socket reaches the engine, for the reason why. It is nil where
// that is not possible either, for the reason that is returned.
func (e *Engine) carriable(ctx context.Context, s Spec, img Image, why string) (_ *carried, whyNot string, err error) {
	defer e.Explain(&err)
	e.RunsElsewhere()
	sees, err := e.sees(ctx, img, s.Dir)
	if err != nil {
		return nil, "", err
	}
	if !sees {
		unshared := &carrier.UnsharedError{Dir: s.Dir, Engine: e.Kind(), Address: e.Address()}
		return nil, "", hint.New(unshared, "share it with the engine's machine (Docker Desktop: Settings, Resources, "+
			"File sharing; podman machine init --volume), or use an engine on this host")
	}
	about, err := e.About(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("ask the engine where it runs: %w", err)
	}
	c := &carried{why: why, arch: about.Architecture}
	if c.binary, err = s.Carrier(c.arch); err != nil {
		return nil, fmt.Sprintf("%s, and %v", why, err), nil
	}
	seen := false
	c.files, seen, err = carrier.FilesParent(func(dir string) (bool, error) { return e.sees(ctx, img, dir) })
	if err != nil || seen {
		return c, "", err
	}
	return nil, why + ", and it sees neither this host's temporary directory nor the user's cache directory", nil
}

// carrierConfig is the container that carries the sandbox's sockets.
func (b box) carrierConfig(seccomp string) carrier.Config {
	return carrier.Config{Name: b.name("carrier"), Volume: b.name("sockets"), Labels: labels(b.Session, "carrier"),
		VolumeLabels: labels(b.Session, "sockets"), Image: b.carry.image, Seccomp: seccomp, Sockets: b.Sockets}
}
