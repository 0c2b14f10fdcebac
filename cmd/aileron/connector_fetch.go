package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

// fetchOptions are the flags of every verb that fetches from the sources of connectors.
type fetchOptions struct{ upstreamOptions }

func (o *fetchOptions) register(cmd *cobra.Command) { o.upstreamOptions.register(cmd) }

// fetcher fetches connectors from their sources, into stages of the store.
type fetcher struct {
	a        *app
	store    *store.Store
	client   *source.Client
	upstream *upstream.Client
	stages   []*store.Stage
	what     string // is being fetched, for the terminal
	shown    time.Time
	mu       sync.Mutex // of what is printed
}

// newFetcher returns a fetcher, which the caller closes. Nothing is sent yet.
func (o *fetchOptions) newFetcher(a *app, s *store.Store) (*fetcher, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	conf, err := config.Read(home)
	if err != nil {
		return nil, err
	}
	up, err := o.upstream(conf)
	if err != nil {
		return nil, err
	}
	f := &fetcher{a: a, store: s}
	if f.upstream, err = upstream.New(up); err != nil {
		return nil, err
	}
	f.client, err = source.New(source.Options{
		Dial: f.upstream.Dial, Roots: up.Roots, Denied: isDenied,
		GitHub: conf.Sources.GitHub, GitLab: conf.Sources.GitLab, Hub: conf.Sources.Hub,
		Idle: time.Duration(conf.Sources.IdleTimeout), Progress: f.progress,
		Notice: f.notice,
	})
	if err != nil {
		f.upstream.Close()
		return nil, hint.New(fmt.Errorf("use the sources of config.toml: %w", err), "docs/configuration.md has [sources]")
	}
	return f, nil
}

// isDenied reports whether a host has no address that may be dialled.
func isDenied(err error) bool {
	var failed *upstream.Error
	return errors.As(err, &failed) && failed.Kind == upstream.AddressDenied
}

// close removes what was fetched, and closes all connections.
func (f *fetcher) close() error {
	var errs []error
	for _, stage := range f.stages {
		errs = append(errs, stage.Close())
	}
	f.client.Close()
	f.upstream.Close()
	return errors.Join(errs...)
}

// closeAfter closes f, and returns err, or else the error of that.
func (f *fetcher) closeAfter(err error) error {
	if closeErr := f.close(); err == nil {
		err = closeErr
	}
	return err
}

// fetchFile returns an asset of a version, of at most most bytes. It is valid until close.
func (f *fetcher) fetchFile(ctx context.Context, ref source.Ref, asset string, most int64) (*os.File, error) {
	stage, err := f.store.Stage()
	if err != nil {
		return nil, err
	}
	f.stages = append(f.stages, stage)
	f.what, f.shown = ref.String(), time.Now()
	f.a.showStatus("aileron: fetching " + f.what) // a source may take its time before it sends anything
	defer f.a.showStatus("")
	err = f.a.interruptible(ctx, func(ctx context.Context) error {
		return f.client.Fetch(ctx, ref, asset, stage.Archive, most)
	})
	return stage.Archive, err
}

// fetch returns FQN@VERSION, whose archive is downloaded, for an installation. It is valid until close.
func (f *fetcher) fetch(ctx context.Context, ref source.Ref, hash string) (store.Source, error) {
	archive, err := f.fetchFile(ctx, ref, source.Asset, store.MaxArchive)
	if err != nil {
		return store.Source{}, err
	}
	return store.Source{
		Src: ref.String(), Hash: hash, Archive: archive.Name(), FQN: ref.FQN, Version: ref.Version,
	}, nil
}

// notice prints that a request is repeated. It is called by several goroutines.
func (f *fetcher) notice(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.a.infof("aileron: %s", text)
}

// progress shows on a terminal how much of an archive has arrived.
func (f *fetcher) progress(done, total int64) {
	if now := time.Now(); now.Sub(f.shown) > 200*time.Millisecond {
		amount := fmt.Sprint(done >> 10)
		if total > 0 {
			amount += fmt.Sprintf(" of %d", total>>10)
		}
		f.a.showStatus(fmt.Sprintf("aileron: fetching %s: %s KiB", f.what, amount))
		f.shown = now
	}
}

// isRemote reports whether a source of an installation is FQN@VERSION, or meant to be.
func isRemote(src string) bool { return strings.Contains(src, "://") }
