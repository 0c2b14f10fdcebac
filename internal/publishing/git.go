package publishing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// errNoRepository is the error of a directory that is in no repository, or where there is no git.
var errNoRepository = errors.New("it is in no git repository")

// maxGit bounds what is read of git, in bytes.
const maxGit = 8 << 20

// repository is the git repository that a connector's directory is in.
type repository struct {
	dir    string // of the connector
	prefix string // of dir in the repository, with a slash at its end, or ""
}

// openRepository returns the repository of a directory.
func openRepository(ctx context.Context, dir string) (*repository, error) {
	r := &repository{dir: dir}
	prefix, err := r.git(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, errNoRepository
	}
	r.prefix = strings.TrimSuffix(string(prefix), "\n")
	return r, nil
}

// git returns what git prints in the directory.
func (r *repository) git(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var out, says bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.dir}, args...)...) //nolint:gosec // a publisher's own
	cmd.Stdout, cmd.Stderr = &capped{&out, maxGit}, &capped{&says, 4 << 10}
	if err := cmd.Run(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(says.String()), "\n")
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, failure.AsLine(line))
	}
	return out.Bytes(), nil
}

// capped is a writer that drops what is more than it takes.
type capped struct {
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (c *capped) Write(b []byte) (int, error) {
	n := min(len(b), c.left)
	c.left -= n
	if _, err := c.w.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// tag returns the tag of a version of a connector in the repository: v1.2.0, or path/v1.2.0 for one at a path of it.
// What follows the project in a name of GitLab is known by where the connector is.
func (r *repository) tag(fqn spec.FQN, version string) string {
	_, rest, _ := strings.Cut(string(fqn), "://")
	parts := strings.Split(rest, "/")
	below := path.Join(parts[2:]...)
	if strings.HasPrefix(string(fqn), "gitlab://") && strings.HasSuffix("/"+rest+"/", "/"+r.prefix) {
		below = strings.TrimSuffix(r.prefix, "/")
	}
	return path.Join(below, "v"+version)
}

// versions returns the versions of a connector that are tagged, highest first.
func (r *repository) versions(ctx context.Context, fqn spec.FQN) (all []string, err error) {
	prefix := r.tag(fqn, "")
	out, err := r.git(ctx, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/tags/"+prefix+"*")
	if err != nil {
		return nil, err
	}
	for name := range strings.Lines(string(out)) {
		if v := strings.TrimPrefix(strings.TrimSuffix(name, "\n"), prefix); spec.IsVersion(v) {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return spec.CompareVersions(b, a) })
	return all, nil
}

// connectorAt returns the connector of the directory as a tag has it.
func (r *repository) connectorAt(ctx context.Context, tag string) (*spec.Connector, error) {
	var files [2][]byte
	for i, name := range []string{spec.ManifestFile, spec.SpecFile} {
		data, err := r.git(ctx, "show", "refs/tags/"+tag+":./"+name)
		if err != nil {
			return nil, fmt.Errorf("the tag %s has no %s in this directory: %w", tag, name, err)
		}
		files[i] = data
	}
	c, err := spec.Load(files[0], files[1])
	if err != nil {
		return nil, fmt.Errorf("the connector of the tag %s: %w", tag, err)
	}
	return c, nil
}

// changed returns the files of the directory that are not as they were committed.
func (r *repository) changed(ctx context.Context) (files []string, err error) {
	out, err := r.git(ctx, "status", "--porcelain", "--untracked-files=all", "--", ".")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if len(line) > 3 {
			files = append(files, strings.TrimSuffix(line[3:], "\n"))
		}
	}
	return files, nil
}

// commitOf returns the commit that a name stands for; "" if there is none.
func (r *repository) commitOf(ctx context.Context, name string) string {
	out, err := r.git(ctx, "rev-parse", "--quiet", "--verify", name+"^{commit}")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// remote returns the URL of the remote origin.
func (r *repository) remote(ctx context.Context) (string, error) {
	out, err := r.git(ctx, "config", "--get", "remote.origin.url")
	if err != nil || strings.TrimSpace(string(out)) == "" {
		return "", hint.New(errors.New("the repository has no remote origin, and a release is fetched from one"),
			"add it with: git remote add origin URL")
	}
	return strings.TrimSpace(string(out)), nil
}
