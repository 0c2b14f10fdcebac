package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

// FetchOptions are the flags of every verb that fetches from the sources of connectors.
type FetchOptions struct{ cli.UpstreamOptions }

func (o *FetchOptions) Register(cmd *cobra.Command) { o.UpstreamOptions.Register(cmd) }

// Fetcher fetches connectors from their sources, into stages of the store.
type Fetcher struct {
	A        *cli.App
	store    *store.Store
	client   *source.Client
	upstream *upstream.Client
	stages   []*store.Stage
	What     string // is being fetched, for the terminal
	shown    time.Time
	mu       sync.Mutex // of what is printed
}

// NewFetcher returns a fetcher, which the caller closes. Nothing is sent yet.
func (o *FetchOptions) NewFetcher(a *cli.App, s *store.Store) (*Fetcher, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	conf, err := config.Read(home)
	if err != nil {
		return nil, err
	}
	up, err := o.Upstream(conf)
	if err != nil {
		return nil, err
	}
	f := &Fetcher{A: a, store: s}
	if f.upstream, err = upstream.New(up); err != nil {
		return nil, err
	}
	f.client, err = source.New(source.Options{
		Dial: f.upstream.Dial, Roots: up.Roots, Denied: isDenied,
		GitHub: conf.Sources.GitHub, GitLab: conf.Sources.GitLab, Hub: conf.Sources.Hub,
		Idle: time.Duration(conf.Sources.IdleTimeout), Progress: f.Progress,
		Notice: f.Notice,
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

// Close removes what was fetched, and closes all connections.
func (f *Fetcher) Close() error {
	var errs []error
	for _, stage := range f.stages {
		errs = append(errs, stage.Close())
	}
	f.client.Close()
	f.upstream.Close()
	return errors.Join(errs...)
}

// CloseAfter closes f, and returns err, or else the error of that.
func (f *Fetcher) CloseAfter(err error) error {
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// fetchFile returns an asset of a version, of at most most bytes. It is valid until close.
func (f *Fetcher) fetchFile(ctx context.Context, ref source.Ref, asset string, most int64) (*os.File, error) {
	stage, err := f.store.Stage()
	if err != nil {
		return nil, err
	}
	f.stages = append(f.stages, stage)
	f.What, f.shown = ref.String(), time.Now()
	f.A.ShowStatus("aileron: fetching " + f.What) // a source may take its time before it sends anything
	defer f.A.ShowStatus("")
	err = f.A.Interruptible(ctx, func(ctx context.Context) error {
		return f.client.Fetch(ctx, ref, asset, stage.Archive, most)
	})
	return stage.Archive, err
}

// fetch returns FQN@VERSION, whose archive is downloaded, for an installation. It is valid until close.
func (f *Fetcher) fetch(ctx context.Context, ref source.Ref, hash string) (store.Source, error) {
	archive, err := f.fetchFile(ctx, ref, source.Asset, store.MaxArchive)
	if err != nil {
		return store.Source{}, err
	}
	return store.Source{
		Src: ref.String(), Hash: hash, Archive: archive.Name(), FQN: ref.FQN, Version: ref.Version,
	}, nil
}

// Notice prints that a request is repeated. It is called by several goroutines.
func (f *Fetcher) Notice(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.A.Infof("aileron: %s", text)
}

// Progress shows on a terminal how much of an archive has arrived.
func (f *Fetcher) Progress(done, total int64) {
	if now := time.Now(); now.Sub(f.shown) > 200*time.Millisecond {
		amount := fmt.Sprint(done >> 10)
		if total > 0 {
			amount += fmt.Sprintf(" of %d", total>>10)
		}
		f.A.ShowStatus(fmt.Sprintf("aileron: fetching %s: %s KiB", f.What, amount))
		f.shown = now
	}
}

// IsRemote reports whether a source of an installation is FQN@VERSION, or meant to be.
func IsRemote(src string) bool { return strings.Contains(src, "://") }

// FetchAction returns the bytes of a published action.
func (f *Fetcher) FetchAction(ctx context.Context, ref source.Ref) ([]byte, error) {
	file, err := f.fetchFile(ctx, ref, "action.md", action.MaxSize)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, action.MaxSize+1))
}
