package publishing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/scaffold"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

// ReleaseOptions are those of [Release].
type ReleaseOptions struct {
	Dir    string
	Output string // the archive; "": the name under which aileron fetches it, in the working directory
	Since  string // the last release, as for [Bump]
	Force  bool   // release a version that is raised by less than is due
	DryRun bool   // change nothing

	// Keys returns the keys that sign, in their order: none for a release without a signature. It is called when all
	// else is in order, as it may ask for a passphrase.
	Keys   func(ctx context.Context) ([]signature.SecretKey, error)
	Faults connectors.FaultLister
}

// Released is what [Release] made, or would make.
type Released struct {
	Connector *spec.Connector
	Archive   string
	Asset     string // the name that the archive must have among the assets of the release
	Tag       string
	Tagged    bool // the tag was there, at this commit
	Keys      []signature.PublicKey
	Last      Last
	Due       Level
	Commands  []string // what is left to do, for a shell
	Notes     []string // what a publisher should know
}

// Release checks that a version can be released as it is committed, packs and signs it, and tags the commit. It pushes
// nothing: the commands that do are in the result.
func Release(ctx context.Context, o ReleaseOptions) (Released, error) {
	c, err := store.Read(o.Dir)
	if err != nil {
		return Released{}, failure.OfInput(connectors.SourceError(o.Dir, err, o.Faults), failure.ReasonConnector)
	}
	rel := Released{Connector: c, Archive: o.Output, Asset: source.Asset}
	if rel.Archive == "" {
		rel.Archive = source.Asset
	}
	r, err := openRepository(ctx, o.Dir)
	if err != nil {
		return rel, hint.New(failure.Input(fmt.Errorf("release %s from %s: %w", c.FQN, o.Dir, err), failure.ReasonConnector),
			"a release is a tag: begin with git init, and commit the connector")
	}
	if err := rel.check(ctx, o, r); err != nil {
		return rel, failure.Input(fmt.Errorf("release %s %s: %w", c.FQN, c.Version, err), failure.ReasonConnector)
	}
	var keys []signature.SecretKey
	if o.Keys != nil {
		if keys, err = o.Keys(ctx); err != nil {
			return rel, err
		}
	}
	if err := rel.pack(o, keys); err != nil {
		return rel, err
	}
	if !rel.Tagged && !o.DryRun {
		if _, err := r.git(ctx, "tag", "--", rel.Tag); err != nil {
			return rel, fmt.Errorf("release %s %s: %w", c.FQN, c.Version, err)
		}
	}
	rel.Commands = rel.commands(o.DryRun)
	return rel, nil
}

// check returns why the version cannot be released.
func (rel *Released) check(ctx context.Context, o ReleaseOptions, r *repository) error {
	c := rel.Connector
	remote, err := r.remote(ctx)
	if err != nil {
		return err
	}
	if name, ok := scaffold.NameOfRemote(remote, ""); ok && !strings.HasPrefix(string(c.FQN)+"/", string(name)+"/") {
		return hint.New(fmt.Errorf("the remote origin is %s, where no user looks for it", name),
			"name the connector after its repository, or release it there")
	}
	head := r.commitOf(ctx, "HEAD")
	if head == "" {
		return hint.New(errors.New("nothing is committed"), "commit the connector; the release is a tag of the commit")
	}
	files, err := r.changed(ctx)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return hint.New(fmt.Errorf("it is not as it was committed: %s", failure.AsLine(someOf(files))),
			"commit it, or add to .gitignore what is no part of the connector")
	}
	rel.Tag = r.tag(c.FQN, c.Version)
	at := r.commitOf(ctx, "refs/tags/"+rel.Tag)
	if at != "" && at != head {
		return hint.New(fmt.Errorf("the tag %s exists, at another commit, and a published version does not change", rel.Tag),
			"raise the version with: aileron connector bump")
	}
	rel.Tagged = at != ""
	below := func(v string) bool { return spec.CompareVersions(v, c.Version) < 0 }
	if rel.Last, err = lastRelease(ctx, o.Dir, o.Since, c, below); err != nil || rel.Last.Connector == nil {
		return err
	}
	changes := Compare(rel.Last.Connector, c)
	rel.Due = Due(changes)
	from := rel.Last.Connector.Version
	if raise := raised(from, c.Version); !o.Force && !enough(from, raise, rel.Due) {
		return tooLittle(rel.Last, c.FQN, raise, rel.Due, changes)
	}
	return nil
}

// someOf returns the first of some names.
func someOf(names []string) string {
	const most = 4
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += ", …"
	}
	return text
}

// pack writes the archive, or, for a dry run, packs it for nothing.
func (rel *Released) pack(o ReleaseOptions, keys []signature.SecretKey) error {
	for _, k := range keys {
		rel.Keys = append(rel.Keys, k.Public())
	}
	output := rel.Archive
	if o.DryRun {
		dir, err := os.MkdirTemp("", "aileron-release-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		output = filepath.Join(dir, source.Asset)
	}
	c, err := connectors.Pack(o.Dir, output, keys, o.Faults)
	if err != nil {
		return err
	}
	rel.Connector = c
	if filepath.Base(rel.Archive) != rel.Asset {
		rel.Notes = append(rel.Notes, fmt.Sprintf("the asset of the release must be called %s", rel.Asset))
	}
	file, err := regular.Read(filepath.Join(o.Dir, signature.TrustFile), signature.MaxSize)
	if err == nil && len(keys) > 0 {
		last, _ := signature.LastOf(signature.AuthorityOf(c.FQN), file) // packing has refused it if it is not valid
		for _, next := range last {
			if !slices.ContainsFunc(rel.Keys, next.Equal) {
				rel.Notes = append(rel.Notes, fmt.Sprintf("the file %s names the next key %s, which does not sign this release: "+
					"users of the key before it stay with that", signature.TrustFile, next.ID()))
			}
		}
	}
	if len(keys) == 0 {
		rel.Notes = append(rel.Notes, "it is not signed: users of signed releases refuse it")
	}
	return nil
}

// commands returns what is left to do.
func (rel *Released) commands(dry bool) (all []string) {
	scheme, _, _ := strings.Cut(string(rel.Connector.FQN), "://")
	tag, archive := quoted(rel.Tag), quoted(rel.Archive)
	if dry && !rel.Tagged {
		all = append(all, "git tag "+tag)
	}
	all = append(all, "git push origin HEAD "+tag)
	switch scheme {
	case "github":
		all = append(all, fmt.Sprintf("gh release create %s %s --verify-tag --title %[1]s --generate-notes", tag, archive))
	case "gitlab":
		all = append(all, fmt.Sprintf("glab release create %s %s --name %[1]s", tag, archive))
	}
	return all
}

// quoted returns a word of a shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-", r)
	}
	if word != "" && !strings.ContainsFunc(word, plain) && word[0] != '-' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
