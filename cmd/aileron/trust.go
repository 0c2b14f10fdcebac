package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/shims"
)

const toolsFile = "/etc/aileron/tools.txt"

// boxFiles returns what goes into the box before it starts: the session's CA
// wherever some runtime looks for roots, and the list of tools that tells the
// agent what it may do. All of it is public.
func (a *app) boxFiles(
	ctx context.Context, s *session.Session, engine *sandbox.Engine, image sandbox.Image,
) ([]sandbox.File, error) {
	return trustFiles(ctx, engine, image, s.RootPEM(), shims.ToolsFile(s.Connectors()), a.logger())
}

// canTrust checks whether an image could be made to trust a session. Its errors
// are those of trustFiles.
func (a *app) canTrust(ctx context.Context, engine *sandbox.Engine, image sandbox.Image) error {
	trial, err := ca.NewSession(ca.Options{Session: "check"})
	if err != nil {
		return err
	}
	_, err = trustFiles(ctx, engine, image, trial.RootPEM(), nil, a.logger())
	return err
}

// trustFiles returns the files that make an image trust a root. The error is a
// trust.Error if the image stands in the way, and a sandbox.ArchitectureError
// if it is made for other machines.
func trustFiles(
	ctx context.Context, engine *sandbox.Engine, image sandbox.Image, root, tools []byte, log *slog.Logger,
) ([]sandbox.File, error) {
	opened, err := engine.OpenImage(ctx, image)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	files, err := trust.Install(opened, root, trust.Options{
		Getenv: opened.Getenv, Mounted: sandbox.Mounted(), Extra: []trust.File{{Path: toolsFile, Data: tools}}, Log: log,
	})
	if blamed, ok := errors.AsType[*trust.Error](err); ok && errors.Is(err, sandbox.ErrEngine) {
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
