package connectors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

// Fetcher fetches connectors from their sources, into stages of the store.
type Fetcher struct {
	ui       *console.Console
	transfer *console.Transfer // under way, or the last one
	store    *store.Store
	client   *source.Client
	upstream *upstream.Client
	stages   []*store.Stage
}

// NewFetcher returns a fetcher into s, which the caller closes. Nothing is sent yet. Without private, which may be nil,
// no credential is.
func NewFetcher(ui *console.Console, s *store.Store, conf config.Sources, up upstream.Options, private *Private,
) (*Fetcher, error) {
	f := &Fetcher{ui: ui, store: s, transfer: ui.Transfer("")}
	var err error
	if f.upstream, err = upstream.New(up); err != nil {
		return nil, err
	}
	var credential func(context.Context, source.API) (source.Credential, error)
	if private != nil {
		credential = private.credential
	}
	f.client, err = source.New(source.Options{Credential: credential,
		Dial: f.upstream.Dial, Roots: up.Roots, Denied: isDenied, GitHub: conf.GitHub, GitLab: conf.GitLab, Hub: conf.Hub,
		Idle:     time.Duration(conf.IdleTimeout),
		Progress: func(done, total int64) { f.transfer.Progress(done, total) },
		Notice:   func(text string) { f.transfer.Notice(text) },
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
	return f.intoStage(ctx, ref.String(), func(ctx context.Context, file *os.File) error {
		return f.client.Fetch(ctx, ref, asset, file, most)
	})
}

// intoStage returns a file of the store into which fetch fetches what has a name. It is valid until close.
func (f *Fetcher) intoStage(ctx context.Context, name string, fetch func(context.Context, *os.File) error,
) (*os.File, error) {
	stage, err := f.store.Stage()
	if err != nil {
		return nil, err
	}
	f.stages = append(f.stages, stage)
	f.transfer = f.ui.Transfer(name)
	defer f.transfer.End()
	err = f.ui.Interruptible(ctx, func(ctx context.Context) error { return fetch(ctx, stage.Archive) })
	return stage.Archive, err
}

// Fetch returns FQN@VERSION, whose archive is downloaded, for an installation. It is valid until close.
func (f *Fetcher) Fetch(ctx context.Context, ref source.Ref, hash string) (store.Source, error) {
	archive, err := f.fetchFile(ctx, ref, source.Asset, store.MaxArchive)
	if err != nil {
		return store.Source{}, err
	}
	return store.Source{
		Src: ref.String(), Hash: hash, Archive: archive.Name(), FQN: ref.FQN, Version: ref.Version,
	}, nil
}

// FetchURL returns the archive at an https URL, for an installation. It is valid until close.
func (f *Fetcher) FetchURL(ctx context.Context, text, hash string) (store.Source, error) {
	u, name, err := source.ParseURL(text)
	if err != nil {
		return store.Source{}, failure.Usage(err)
	}
	archive, err := f.intoStage(ctx, name, func(ctx context.Context, file *os.File) error {
		return f.client.FetchURL(ctx, u, name, file, store.MaxArchive)
	})
	if err != nil {
		return store.Source{}, err
	}
	return store.Source{Src: name, Hash: hash, Archive: archive.Name()}, nil
}

// IsURL reports whether a source of an installation is the address of an archive.
func IsURL(src string) bool {
	scheme, _, ok := strings.Cut(src, "://")
	return ok && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http"))
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

// RemoteRef returns the version that a source names, and reports whether it has to be fetched.
func RemoteRef(src string) (source.Ref, bool) {
	if _, inCatalog, err := CatalogSource(src); inCatalog || err != nil || !IsRemote(src) {
		return source.Ref{}, false
	}
	ref, err := source.ParseRef(src)
	return ref, err == nil
}
