package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// order is the subjects, as the tables show them.
var order = []string{"direct", "connect", "goproxy", "martian", "mitmproxy", "lighth2", reference, "aileron"}

// reference is the subject that verdicts compare aileron with: a MITM proxy without policy that speaks HTTP/1.1
// upstream. It carries the same bytes through TLS twice, which no proxy that terminates TLS can avoid.
const reference = "light"

// strangers are the subjects that other people wrote.
var strangers = []string{"goproxy", "martian", "mitmproxy"}

// fixture is the bench set up: the origin, the subjects, and what they need.
type fixture struct {
	options  *options
	cfg      partConfig
	origin   *process
	home     *home
	wide     *home // with room for many tunnels, and a login
	boxes    *boxes
	subjects []*subject
	absent   []string // subjects that cannot run here, and why
}

// setUp starts the origin and the subjects. The caller tears down, whatever
// the error.
func setUp(ctx context.Context, o *options) (y *fixture, err error) {
	y = &fixture{options: o}
	if y.cfg.dir, err = os.MkdirTemp("", "aileron-bench-"); err != nil {
		return y, err
	}
	if y.origin, err = startPart(ctx, "origin", y.cfg); err != nil {
		return y, err
	}
	y.cfg.origin = y.origin.Addr
	for _, name := range order {
		if !o.wants(name) {
			continue
		}
		if _, err := exec.LookPath("mitmdump"); err != nil && name == "mitmproxy" {
			y.absent = append(y.absent, "mitmproxy is not measured: mitmdump is not installed.")
			continue
		}
		s, err := y.launch(ctx, name)
		if err != nil {
			return y, err
		}
		y.subjects = append(y.subjects, s)
	}
	return y, nil
}

func (o *options) wants(subject string) bool {
	return len(o.subjects) == 0 || subject == reference || slices.Contains(o.subjects, subject)
}

// launch starts a subject.
func (y *fixture) launch(ctx context.Context, name string) (*subject, error) {
	switch name {
	case "direct":
		roots, err := rootsOf(y.origin.CAFile)
		return &subject{name: name, addr: y.origin.Addr, origin: y.origin.Addr, roots: roots}, err
	case "mitmproxy":
		return y.launched(name, func() (*process, error) { return startMitmproxy(ctx, y.cfg) })
	case "aileron":
		return y.launchAileron(ctx, false)
	}
	return y.launched(name, func() (*process, error) { return startPart(ctx, name, y.cfg) })
}

func (y *fixture) launched(name string, start func() (*process, error)) (*subject, error) {
	p, err := start()
	if err != nil {
		return nil, err
	}
	s, err := subjectOf(name, y.origin.Addr, p)
	if err != nil {
		p.stop()
	}
	return s, err
}

// launchAileron starts a session, on the bench's home or on the wide one.
func (y *fixture) launchAileron(ctx context.Context, wide bool) (*subject, error) {
	home, dir, limits := &y.home, y.cfg.dir, ""
	if wide {
		home, dir, limits = &y.wide, filepath.Join(y.cfg.dir, "wide"), wideLimits
	}
	if *home == nil {
		made, err := y.makeHome(ctx, dir, limits)
		if err == nil && wide {
			err = made.logIn(ctx, dir)
		}
		if err != nil {
			return nil, err
		}
		*home = made
	}
	s, err := y.launched("aileron", func() (*process, error) { return (*home).serve(ctx) })
	if err == nil {
		s.another, s.install, s.box = y.launchAileron, y.install, y.box
	}
	return s, err
}

// makeHome sets aileron up in a directory, with further limits than the bench's own.
func (y *fixture) makeHome(ctx context.Context, dir, limits string) (*home, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	binary, err := filepath.Abs(y.options.aileron)
	if y.options.profile != "" {
		binary, err = buildProfiled(ctx, y.cfg.dir)
	}
	if err != nil {
		return nil, err
	}
	return newHome(ctx, binary, dir, y.origin.Addr, y.origin.CAFile, limits, y.options.audit())
}

func (y *fixture) tearDown() {
	for _, s := range y.subjects {
		s.stop()
	}
	if y.origin != nil {
		y.origin.stop()
	}
	if y.cfg.dir != "" {
		_ = os.RemoveAll(y.cfg.dir)
	}
}

// counts asks the origin what it saw, past every subject.
func (y *fixture) counts(ctx context.Context) (counts, error) {
	roots, err := rootsOf(y.origin.CAFile)
	if err != nil {
		return counts{}, err
	}
	direct := &subject{name: "direct", addr: y.origin.Addr, roots: roots}
	c, err := direct.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return counts{}, err
	}
	defer c.Close()
	raw, err := c.get(request("GET", apiHost, "/counts"))
	if err != nil {
		return counts{}, err
	}
	var n counts
	return n, json.Unmarshal(raw, &n)
}
