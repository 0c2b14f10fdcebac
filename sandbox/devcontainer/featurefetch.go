package devcontainer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
)

// FeatureSet is what was fetched for a request, in the order in which it is installed.
type FeatureSet struct {
	Features []FetchedFeature `json:"features"`
}

// FetchedFeature is one feature of a [FeatureSet].
type FetchedFeature struct {
	Ref      string `json:"ref"`                // as the file names it, or a feature that depends on it
	Manifest string `json:"manifest,omitempty"` // the digest of its manifest in a registry
	// Value are the options that are given; nil where Asked.
	Value any `json:"value,omitempty"`
	// Asked is whether the configuration names it, and has its options. They may have secrets, and are not kept.
	Asked bool   `json:"asked,omitempty"`
	Files []File `json:"files"`
}

// Fetch fetches features into a directory of its own below scratch, and reads what was fetched.
//
// The program runs on this host, so it gets nothing of the project but names: a configuration with the names of the
// features, without their options, and the names that the metadata of local ones has, both written anew. It gets no
// engine (it asks one for a container of the project, and true has none), no variable of this host but those of its
// network, and no credential: what a project names in a registry is what everyone may read.
func (c *CLI) Fetch(ctx context.Context, scratch string, r *FeatureRequest) (*FeatureSet, error) {
	removeKilled(scratch)
	dir, err := os.MkdirTemp(scratch, fetchPrefix)
	if err != nil {
		return nil, fmt.Errorf("fetch features: %w", err)
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("fetch features: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("fetch features: %w", err)
	}
	defer root.Close()
	if err := r.lay(root); err != nil {
		return nil, fmt.Errorf("fetch features: %w", err)
	}
	if err := c.checkVersion(ctx, dir); err != nil {
		return nil, err
	}
	out, err := c.run(ctx, dir, "read-configuration", "--include-features-configuration", "--workspace-folder",
		filepath.Join(dir, fetchProject), "--docker-path", c.nothing, "--docker-compose-path", c.nothing)
	if err != nil {
		return nil, err
	}
	return r.readFetched(ctx, root, dir, out)
}

// fetchPrefix begins the name of the directory of a fetch, and fetchAge is from when on it is that of one that was
// killed: a fetch runs the program twice.
const (
	fetchPrefix = "fetch-"
	fetchAge    = 4 * fetchTime
)

// removeKilled removes what fetches have left that were killed: hundreds of MiB each.
func removeKilled(scratch string) {
	entries, err := os.ReadDir(scratch)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.IsDir() && strings.HasPrefix(e.Name(), fetchPrefix) && time.Since(info.ModTime()) > fetchAge {
			_ = os.RemoveAll(filepath.Join(scratch, e.Name()))
		}
	}
}

// The directories of a fetch.
const (
	fetchProject = "project"
	fetchTemp    = "tmp"
	fetchConfig  = "docker"
)

// lay writes what the reference implementation reads.
func (r *FeatureRequest) lay(root *os.Root) error {
	docs, err := r.handed()
	if err != nil {
		return err
	}
	// With an entry, it asks no helper of this host for a credential.
	files := map[string][]byte{path.Join(fetchConfig, "config.json"): []byte(`{"auths":{"aileron.invalid":{}}}`)}
	for at, doc := range docs {
		if files[path.Join(fetchProject, at)], err = json.Marshal(doc); err != nil {
			return err
		}
	}
	for at, data := range files {
		if err := root.MkdirAll(path.Dir(at), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(at, data, 0o600); err != nil {
			return err
		}
	}
	return root.Mkdir(fetchTemp, 0o700)
}

// fetchedSet is one feature of what the reference implementation prints.
type fetchedSet struct {
	Features []struct {
		Value     any    `json:"value"`
		CachePath string `json:"cachePath"`
	} `json:"features"`
	Source struct {
		Type     string `json:"type"`
		Ref      string `json:"userFeatureId"`
		Manifest string `json:"manifestDigest"`
	} `json:"sourceInformation"`
	Version string `json:"internalVersion"`
}

// readFetched reads the files of the features that were fetched. What was fetched is of others: nothing outside of the
// directory is read. The files of a local feature are those that the request has.
func (r *FeatureRequest) readFetched(ctx context.Context, root *os.Root, dir string, out []byte) (*FeatureSet, error) {
	fetched, err := r.fetched()
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for ref, name := range fetched {
		names[name] = ref
	}
	var answer struct {
		Features struct {
			Sets []fetchedSet `json:"featureSets"`
		} `json:"featuresConfiguration"`
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		return nil, fmt.Errorf("fetch features: read what the reference implementation prints: %w", err)
	}
	sets := answer.Features.Sets
	if len(sets) == 0 || len(sets) > maxFeatures {
		return nil, hint.New(fmt.Errorf("fetch features: with those that they depend on there are %d, and there may be 1 "+
			"to %d", len(sets), maxFeatures), "use fewer")
	}
	set, size := &FeatureSet{}, 0
	for _, s := range sets {
		if s.Version != "2" || len(s.Features) != 1 || s.Source.Ref == "" || !printable(s.Source.Ref) ||
			!printable(s.Source.Manifest) {
			return nil, hint.New(fmt.Errorf("fetch features: %q is of a form that is not known here", s.Source.Ref),
				"use @devcontainers/cli 0.89.0, and a feature with a %s", featureMetadata)
		}
		f := FetchedFeature{Ref: s.Source.Ref, Manifest: s.Source.Manifest, Value: s.Features[0].Value}
		if name, ok := names[f.Ref]; ok {
			f.Ref = name
			// One of these that another depends on has the options that that one gives, if any.
			if given, ok := f.Value.(map[string]any); f.Value == nil || ok && len(given) == 0 {
				f.Value, f.Asked = nil, true
			}
		}
		if f.Files, err = r.filesOf(ctx, root, dir, f.Ref, s); err != nil {
			return nil, err
		}
		for _, file := range f.Files {
			size += len(file.Data)
		}
		if size > maxContextBytes {
			return nil, hint.New(fmt.Errorf("fetch features: they have more than %d MiB", maxContextBytes>>20), "use fewer")
		}
		set.Features = append(set.Features, f)
	}
	return set, nil
}

// filesOf returns the files of one feature that was fetched.
func (r *FeatureRequest) filesOf(ctx context.Context, root *os.Root, dir, ref string, s fetchedSet) ([]File, error) {
	for _, l := range r.Local {
		if l.Ref == ref {
			return l.Files, nil
		}
	}
	at, err := filepath.Rel(dir, s.Features[0].CachePath)
	if err != nil || !filepath.IsLocal(at) || s.Source.Type == "file-path" {
		return nil, fmt.Errorf("fetch features: %q was put outside of its place", ref)
	}
	files, err := readUnpacked(ctx, root, at)
	if err != nil {
		return nil, fmt.Errorf("read the feature %q: %w", ref, err)
	}
	return files, nil
}
