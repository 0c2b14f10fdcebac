package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// CanTrust returns an error unless an image can be made to trust a session: a [*trust.Error] if the image prevents it,
// and a [*sandbox.ArchitectureError] if it is made for other machines.
func CanTrust(ctx context.Context, e *sandbox.Engine, image sandbox.Image, log *slog.Logger) error {
	trial, err := ca.NewSession(ca.Options{Session: "check"})
	if err != nil {
		return err
	}
	opened, err := e.OpenImage(ctx, image)
	if err != nil {
		return err
	}
	defer opened.Close()
	_, err = trustFiles(opened, image, trial.RootPEM(), nil, log)
	return err
}

// trustFiles returns what is put into the container of an image before it starts: a root wherever some runtime looks
// for roots, and the files that describe the sandbox to its agent. All of it is public. The error is a
// [*trust.Error] if the image prevents it.
func trustFiles(
	opened *sandbox.ImageFS, image sandbox.Image, root []byte, described []trust.File, log *slog.Logger,
) ([]sandbox.File, error) {
	files, err := trust.Install(opened, root, trust.Options{
		Getenv: opened.Getenv, Mounted: sandbox.Mounted(), Extra: described, Log: log,
	})
	if blamed, ok := errors.AsType[*trust.Error](err); ok && errors.Is(err, engine.ErrEngine) {
		return nil, blamed.Cause // the engine's fault, not the image's
	}
	if err != nil {
		return nil, fmt.Errorf("make the image %s trust the session: %w", image.Ref, err)
	}
	var put []sandbox.File
	for _, f := range files {
		put = append(put, sandbox.File(f))
	}
	return put, nil
}
