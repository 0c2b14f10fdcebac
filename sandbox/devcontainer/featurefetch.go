package devcontainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// FeatureRequest is what a configuration asks for of features before they are fetched.
type FeatureRequest struct {
	File     string         // of the configuration, relative to the project
	Features map[string]any // options by the name of the feature, with variables replaced
	Order    []string       // overrideFeatureInstallOrder
	Local    []File         // of the features that lie in the project, with paths relative to it
	Lock     []byte         // devcontainer-lock.json; nil is none
}

// maxFeatures bounds the features of a configuration with those that they depend on.
const maxFeatures = 64

// Key returns a digest of the request.
func (r *FeatureRequest) Key() string {
	features, err := json.Marshal(r.Features)
	order, err2 := json.Marshal(r.Order)
	if err != nil || err2 != nil { // it was read as JSON
		return ""
	}
	return digest([]byte(r.File), features, order, r.Lock, []byte(digestOf(r.Local)))
}

// Remote returns the features that are fetched from another machine, and local ones whose metadata names others,
// sorted.
func (r *FeatureRequest) Remote() (all []string) {
	for ref := range r.Features {
		if !isLocalFeature(ref) {
			all = append(all, ref)
		}
	}
	for _, f := range r.Local {
		if path.Base(f.Path) != featureMetadata {
			continue
		}
		doc, err := parse(f.Data)
		if err != nil || doc.root["dependsOn"] != nil || doc.root["installsAfter"] != nil {
			all = append(all, "./"+path.Base(path.Dir(f.Path)))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// locked returns the features by the names that are fetched, and the names of the file by these: one that the lock file
// has is fetched by its digest.
func (r *FeatureRequest) locked() (features map[string]any, names map[string]string, err error) {
	var lock struct {
		Features map[string]struct {
			Resolved string `json:"resolved"`
		} `json:"features"`
	}
	if len(bytes.TrimSpace(r.Lock)) > 0 {
		if err := json.Unmarshal(r.Lock, &lock); err != nil {
			return nil, nil, hint.New(fmt.Errorf("read %s: %w", lockFile, err), "correct the file, or remove it")
		}
	}
	features, names = map[string]any{}, map[string]string{}
	for ref, value := range r.Features {
		fetched := ref
		if l, ok := lock.Features[ref]; ok && !isLocalFeature(ref) && !strings.HasPrefix(ref, "https://") {
			resource, _, _ := strings.Cut(strings.ToLower(l.Resolved), "@")
			if strings.ToLower(featureVersion().ReplaceAllString(ref, "")) != resource ||
				!lockedName().MatchString(l.Resolved) {
				return nil, nil, hint.New(fmt.Errorf("read %s: it resolves %s to %q", lockFile, ref, l.Resolved),
					"correct the file, or remove it")
			}
			fetched = l.Resolved
		}
		features[fetched], names[fetched] = value, ref
	}
	return features, names, nil
}

// lockedName is a feature in a registry by its digest.
var lockedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]*@sha256:[0-9a-f]{64}$`)
})

// FeatureSet is what was fetched for a request, in the order in which it is installed.
type FeatureSet struct {
	Features []FetchedFeature `json:"features"`
}

// FetchedFeature is one feature of a [FeatureSet].
type FetchedFeature struct {
	Ref      string `json:"ref"`                // as the file names it, or a feature that depends on it
	Manifest string `json:"manifest,omitempty"` // the digest of its manifest in a registry
	Value    any    `json:"value"`              // the options that are given
	Files    []File `json:"files"`
}

// NoCLI is the hint of an error because of which features are refused.
const NoCLI = "install the reference implementation, which fetches features: npm install -g @devcontainers/cli; or " +
	"install what they bring in a Dockerfile; or start without the devcontainer: --devcontainer=off"

// FindCLI returns the path of the reference implementation. One that lies in the project would be a program of the
// project's.
func FindCLI(project string) (string, error) {
	found, err := exec.LookPath("devcontainer")
	if err != nil {
		return "", hint.New(errors.New("use features: the reference implementation that fetches them is not installed: "+
			"there is no devcontainer on the PATH"), "%s", NoCLI)
	}
	at, err := filepath.EvalSymlinks(found)
	if err != nil {
		return "", fmt.Errorf("use features: %w", err)
	}
	for _, name := range []string{found, at} {
		if rel, err := filepath.Rel(project, name); err == nil && filepath.IsLocal(rel) || !filepath.IsAbs(name) {
			return "", hint.New(fmt.Errorf("use features: the devcontainer on the PATH is %s, a file of the project", name),
				"%s", NoCLI)
		}
	}
	return found, nil
}

const (
	fetchTime   = 10 * time.Minute
	fetchGrace  = 5 * time.Second
	maxAnswer   = 16 << 20
	maxFetchLog = 64 << 10
)

// FetchFeatures fetches features with the reference implementation, whose path is cli, into a directory of its own
// below scratch, and reads what it has fetched.
//
// It runs on this host, so it gets nothing of the project but the request: a configuration with the features alone, and
// the files of those that lie in the project. It gets no engine (it asks one for a container of the project, and true
// has none), no variable of this host but those of its network, and no credential: what a project names in a registry
// is what everyone may read.
func FetchFeatures(ctx context.Context, cli, scratch string, r *FeatureRequest) (*FeatureSet, error) {
	dir, err := os.MkdirTemp(scratch, "fetch-")
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
	features, names, err := r.locked()
	if err != nil {
		return nil, err
	}
	if err := r.lay(root, features); err != nil {
		return nil, fmt.Errorf("fetch features: %w", err)
	}
	out, err := runCLI(ctx, cli, dir)
	if err != nil {
		return nil, err
	}
	return readFetched(ctx, root, dir, out, names)
}

// The directories of a fetch.
const (
	fetchProject = "project"
	fetchTemp    = "tmp"
	fetchConfig  = "docker"
)

// lay writes what the reference implementation reads.
func (r *FeatureRequest) lay(root *os.Root, features map[string]any) error {
	config := map[string]any{"image": "scratch", "features": features}
	if r.Order != nil {
		config["overrideFeatureInstallOrder"] = r.Order
	}
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	files := append(slices.Clone(r.Local), File{Path: r.File, Mode: 0o644, Data: text})
	for i := range files {
		files[i].Path = path.Join(fetchProject, files[i].Path)
	}
	files = append(files, File{Path: fetchTemp, Mode: fs.ModeDir | 0o700},
		// With an entry, it asks no helper of this host for a credential.
		File{Path: path.Join(fetchConfig, "config.json"), Mode: 0o600, Data: []byte(`{"auths":{"aileron.invalid":{}}}`)})
	for _, f := range files {
		if f.Mode.IsDir() {
			err = root.MkdirAll(f.Path, 0o700)
		} else if err = root.MkdirAll(path.Dir(f.Path), 0o700); err == nil {
			if f.Mode&fs.ModeSymlink != 0 {
				err = root.Symlink(f.Link, f.Path)
			} else {
				err = root.WriteFile(f.Path, f.Data, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ofNetwork are the variables of this host that a fetch gets.
func ofNetwork() []string {
	return []string{"PATH", "HOME", "LANG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy",
		"no_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"}
}

// runCLI runs the reference implementation and returns what it prints.
func runCLI(ctx context.Context, cli, dir string) ([]byte, error) {
	nothing, err := exec.LookPath("true")
	if err != nil {
		return nil, fmt.Errorf("fetch features: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	args := []string{"read-configuration", "--include-features-configuration", "--workspace-folder",
		filepath.Join(dir, fetchProject), "--docker-path", nothing, "--docker-compose-path", nothing}
	cmd := exec.CommandContext(limited, cli, args...) //nolint:gosec // a person has installed it
	cmd.Dir = filepath.Join(dir, fetchProject)
	for _, name := range ofNetwork() {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+filepath.Join(dir, fetchTemp), "DOCKER_CONFIG="+filepath.Join(dir, fetchConfig))
	out, log := &bounded{limit: maxAnswer}, &bounded{limit: maxFetchLog, last: true}
	cmd.Stdout, cmd.Stderr = out, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = fetchGrace
	err = cmd.Run()
	if limited.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		err = fmt.Errorf("it did not end within %s", fetchTime)
	case err == nil && out.more:
		err = fmt.Errorf("it printed more than %d MiB", maxAnswer>>20)
	}
	if err != nil {
		return nil, hint.New(fmt.Errorf("fetch features with %s: %w%s", cli, err, log.lastLines()),
			"correct the names of the features, and see whether their registry can be reached without a credential; or "+
				"start without the devcontainer: --devcontainer=off")
	}
	return out.data, nil
}

// bounded keeps the first bytes of what is written, or the last.
type bounded struct {
	limit int
	last  bool
	data  []byte
	more  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if over := len(b.data) - b.limit; over > 0 {
		b.more = true
		if b.last {
			b.data = append(b.data[:0], b.data[over:]...)
		} else {
			b.data = b.data[:b.limit]
		}
	}
	return len(p), nil
}

// shownLines bounds the lines of the log that an error has.
const shownLines = 8

// lastLines returns the last lines, in one.
func (b *bounded) lastLines() string {
	lines := strings.Split(strings.TrimSpace(string(b.data)), "\n")
	lines = lines[max(0, len(lines)-shownLines):]
	if text := strings.Join(lines, " | "); text != "" {
		return ": " + termsafe.Line(text)
	}
	return ""
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
// directory is read.
func readFetched(ctx context.Context, root *os.Root, dir string, out []byte, names map[string]string) (*FeatureSet,
	error) {
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
		at, err := filepath.Rel(dir, s.Features[0].CachePath)
		if err != nil || !filepath.IsLocal(at) {
			return nil, fmt.Errorf("fetch features: %q was put outside of its place", s.Source.Ref)
		}
		files, err := readTree(ctx, root, at)
		if err != nil {
			return nil, fmt.Errorf("read the feature %q: %w", s.Source.Ref, err)
		}
		for _, f := range files {
			size += len(f.Data)
		}
		if size > maxContextBytes {
			return nil, hint.New(fmt.Errorf("fetch features: they have more than %d MiB", maxContextBytes>>20), "use fewer")
		}
		ref := s.Source.Ref
		if name, ok := names[ref]; ok {
			ref = name
		}
		set.Features = append(set.Features, FetchedFeature{Ref: ref, Manifest: s.Source.Manifest,
			Value: s.Features[0].Value, Files: files})
	}
	return set, nil
}
