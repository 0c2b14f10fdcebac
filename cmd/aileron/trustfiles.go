package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/shims"
)

// bundlePaths are where distributions keep their roots: as crypto/x509 knows
// them, and OpenSSL's own file in the RHEL family.
var bundlePaths = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem", "/etc/pki/tls/cert.pem", "/etc/ssl/certs/ca-bundle.crt",
}

// families are what distributions rebuild their bundles from: a root in the
// anchors is kept by update-ca-certificates and update-ca-trust. A family is
// known by a path of its own.
var families = []struct{ mark, anchors, bundle string }{
	{"/etc/pki/ca-trust", "/etc/pki/ca-trust/source/anchors", "/etc/pki/tls/certs/ca-bundle.crt"},      // RHEL, Fedora
	{"/etc/ca-certificates/trust-source", "/etc/ca-certificates/trust-source/anchors", bundlePaths[0]}, // Arch
	{"/etc/pki/trust", "/etc/pki/trust/anchors", "/etc/ssl/ca-bundle.pem"},                             // SUSE
	{"/etc/ca-certificates.conf", "/usr/local/share/ca-certificates", bundlePaths[0]},                  // Debian, Alpine
	{"/etc/debian_version", "/usr/local/share/ca-certificates", bundlePaths[0]},                        // before ca-certificates is installed
	{"/etc/alpine-release", "/usr/local/share/ca-certificates", bundlePaths[0]},                        // likewise
}

// hashDirs are the directories in which OpenSSL looks for a root by its hash.
var hashDirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs"}

// chromiumPolicies are where the browsers of that kind read their policies.
var chromiumPolicies = []string{"/etc/chromium", "/etc/opt/chrome", "/etc/opt/chrome_for_testing"}

// aptSandbox lets apt be root where it cannot become another user, which is
// every box.
const aptSandbox = "// Put here by aileron: a box has no capability to become _apt.\nAPT::Sandbox::User \"root\";\n"

// boxFiles are what goes into the box before it starts: the session's CA
// wherever some runtime looks for roots, and what tells the agent what it may
// do. All of it is public.
func (s *session) boxFiles(ctx context.Context, engine *sandbox.Engine, image sandbox.Image) ([]sandbox.File, error) {
	return trustIn(ctx, engine, image, s.ca.RootPEM(), shims.ToolsFile(s.grants.installed()), s.log)
}

// canTrust looks whether an image could be made to trust a session. An error
// is one of trustIn.
func (a *app) canTrust(ctx context.Context, engine *sandbox.Engine, image sandbox.Image) error {
	nobodys, err := ca.NewSession(ca.Options{Session: "check"})
	if err != nil {
		return err
	}
	_, err = trustIn(ctx, engine, image, nobodys.RootPEM(), nil, a.logger())
	return err
}

// trustIn are the files that make an image trust a root. An image in which
// some client could not be made to trust it gives an untrustedError, one for
// other machines a sandbox.ArchitectureError.
func trustIn(ctx context.Context, engine *sandbox.Engine, image sandbox.Image, root, tools []byte, log *slog.Logger) ([]sandbox.File, error) {
	files, err := engine.OpenImage(ctx, image)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	b := &trustFiles{fsys: files, getenv: files.Getenv, image: image.Ref, root: root, put: map[string]bool{}}
	system, err := b.bundles(ctx)
	if err != nil {
		return nil, err
	}
	java, unread := b.javaRoots(ctx)
	if unread != nil {
		log.Warn("a Java trust store of the image is not read: Java in the box trusts the system's roots and the session's", "error", unread)
	}
	if java == nil {
		java = system
	}
	store, err := ca.JavaTrustStore(ca.Bundle(java, b.root))
	if err != nil {
		return nil, err
	}
	firefox, err := b.firefoxPolicies(ctx)
	if err != nil {
		log.Warn("Firefox in the box will not trust the session", "error", err)
	}
	block, _ := pem.Decode(b.root)
	chromium, err := json.Marshal(map[string][]string{"CACertificates": {base64.StdEncoding.EncodeToString(block.Bytes)}})
	if err != nil {
		return nil, err
	}
	b.add(ctx, boxCA, b.root)
	b.add(ctx, boxBundle, ca.Bundle(system, b.root))
	b.add(ctx, boxJava, store)
	b.anchors(ctx)
	b.hashLinks(ctx)
	for _, dir := range chromiumPolicies {
		b.add(ctx, dir+"/policies/managed/aileron.json", chromium)
	}
	if firefox != nil {
		b.add(ctx, firefoxPolicies, firefox)
	}
	if b.has(ctx, "/etc/apt/apt.conf.d") {
		b.add(ctx, "/etc/apt/apt.conf.d/99aileron", []byte(aptSandbox))
	}
	b.add(ctx, "/etc/aileron/tools.txt", tools)
	return b.files, b.err
}

// trustFiles collects files for an image, each where its links lead.
type trustFiles struct {
	fsys   fs.ReadLinkFS
	getenv func(name string) string
	image  string
	root   []byte
	put    map[string]bool // what is in files, by its path
	files  []sandbox.File
	err    error // the first that came up
}

// hidden reports whether a path of an image is not what a box sees there: it
// is mounted over, with the project or by the engine. What is put there would
// miss the box, or reach the project.
func hidden(name string) bool {
	for _, dir := range []string{path.Dir(sandbox.Workspace), "/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// add puts a file where the image's links lead, once.
func (b *trustFiles) add(ctx context.Context, name string, data []byte) {
	at := b.find(ctx, name)
	to := "/" + at.Path
	switch {
	case b.err != nil || b.put[to]:
		return
	case hidden(to):
		b.err = b.refusal(name, fmt.Errorf("its links lead to %s, where the box has something else", to))
		return
	case at.Exists() && !at.Info.Mode().IsRegular():
		b.err = b.refusal(name, errors.New("it is not a file, and the session's CA has to stand there"))
		return
	}
	for _, dir := range at.Missing {
		dir = "/" + dir
		if !b.put[dir] {
			b.put[dir] = true
			b.files = append(b.files, sandbox.File{Path: dir, Mode: fs.ModeDir | 0o755})
		}
	}
	b.put[to] = true
	b.files = append(b.files, sandbox.File{Path: to, Mode: 0o644, Data: data})
}

func (b *trustFiles) find(ctx context.Context, name string) imagefs.Place {
	if b.err != nil {
		return imagefs.Place{}
	}
	at, err := imagefs.Resolve(b.fsys, strings.TrimPrefix(name, "/"))
	if err != nil {
		b.err = b.refusal(name, err)
	}
	return at
}

func (b *trustFiles) has(ctx context.Context, name string) bool { return b.find(ctx, name).Exists() }

// untrustedError says which file keeps an image from trusting a session.
type untrustedError struct {
	image, name string
	cause       error
}

func (e *untrustedError) Error() string {
	return fmt.Sprintf("make the image %s trust the session: %s: %v", e.image, e.name, e.cause)
}

// ErrorClass and ErrorReason are for --json.
func (*untrustedError) ErrorClass() string  { return "invalid_request" }
func (*untrustedError) ErrorReason() string { return reasonPreflight }

func (e *untrustedError) Unwrap() error { return e.cause }

// refusal is an error about the image. One of the engine's is nobody's fault
// here.
func (b *trustFiles) refusal(name string, err error) error {
	if errors.Is(err, sandbox.ErrEngine) {
		return err
	}
	return hint.New(&untrustedError{b.image, name, err},
		"rebuild the image with its distribution's ca-certificates package as it is, or without %s", name)
}

// bundles adds the CA to every bundle that the image has, and gives the
// image's own roots. An image without any gets this host's, where its
// distribution keeps them.
func (b *trustFiles) bundles(ctx context.Context) ([]byte, error) {
	var system []byte
	var blank []string
	for _, name := range bundlePaths {
		at := b.find(ctx, name)
		if b.err != nil {
			return nil, b.err
		}
		if !at.Exists() || b.put["/"+at.Path] {
			continue
		}
		data, err := fs.ReadFile(b.fsys, strings.TrimPrefix(name, "/"))
		if err == nil {
			err = ca.CheckBundle(data)
		}
		switch {
		case err != nil:
			return nil, b.refusal(name, err)
		case len(bytes.TrimSpace(data)) == 0:
			blank = append(blank, name)
			continue
		case system == nil:
			system = data
		}
		b.add(ctx, name, ca.Bundle(data, b.root))
	}
	if system == nil {
		var err error
		if system, err = ca.SystemBundle(); err != nil {
			return nil, hint.New(fmt.Errorf("give the image %s roots, which it has not: %w", b.image, err), "install ca-certificates on this host or in the image")
		}
		if blank == nil {
			blank = []string{b.family(ctx).bundle}
		}
	}
	for _, name := range blank {
		b.add(ctx, name, ca.Bundle(system, b.root))
	}
	return system, b.err
}

// family is the image's distribution, or one without anchors.
func (b *trustFiles) family(ctx context.Context) (f struct{ mark, anchors, bundle string }) {
	for _, f := range families {
		if b.has(ctx, f.mark) {
			return f
		}
	}
	f.bundle = bundlePaths[0]
	return f
}

// anchors puts the CA where the distribution's own program finds it when it
// makes the bundles anew.
func (b *trustFiles) anchors(ctx context.Context) {
	for _, f := range families {
		if b.has(ctx, f.mark) {
			b.add(ctx, f.anchors+"/aileron-session.crt", b.root)
		}
	}
}

// hashLinks puts the CA under its hash, in the first place that is free.
func (b *trustFiles) hashLinks(ctx context.Context) {
	link, err := ca.HashLink(b.root)
	if err != nil && b.err == nil {
		b.err = err
	}
	hash := strings.TrimSuffix(link, "0")
	for _, dir := range hashDirs {
		if at := b.find(ctx, dir); !at.Exists() && dir != hashDirs[0] {
			continue
		}
		for n := range 8 {
			name := fmt.Sprintf("%s/%s%d", dir, hash, n)
			if !b.has(ctx, name) {
				b.add(ctx, name, b.root)
				break
			}
		}
	}
}
