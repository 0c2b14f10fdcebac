package attacks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

// spc: connectors made or changed by an attacker.
func spc() category {
	return category{name: "SPC", cases: []attack{
		{id: "SPC-01", does: "what is not byte for byte what was installed grants nothing, and never what it was changed to",
			run: func(c *testCase) {
				spcChanged(c)
				spcSwapped(c)
			}},
		{id: "SPC-02", does: "a host is a plain public name with a port, in one spelling", run: func(c *testCase) {
			for _, host := range []string{"https://x.test", "x.test/path", "u@x.test", "*", "*.test", "", "x.test:0",
				"x.test:99999", "127.0.0.1", "169.254.169.254", "localhost", "a.localhost",
				"host.docker.internal", "aileron.internal", "x.test.", "[::1]", "0x7f.1", "2130706433", "x_y.test", "x.test ",
				"*.good.test"} {
				if _, err := draw(func(d *drawn) { d.host = host }).load(); err == nil {
					c.failf("the host %q is taken", host)
				}
			}
			got, err := draw(func(d *drawn) { d.host = "X.Good.Test" }).load()
			if err != nil || got.Tools[0].Operations[0].Hosts[0].String() != "x.good.test:443" {
				c.failf("upper case: %v", err)
			}
		}},
		{id: "SPC-04", does: "a command's name leads nowhere else and hides no other command", run: func(c *testCase) {
			for _, tool := range []string{"..", ".", "-rf", ".profile", "sh", "SH", "bash", "wget", "env", "sudo", "git",
				"claude", "ld.so", "a/b", "a\\b", "CON", repeated("a", 300), "", "a b", "$(id)", "aileron"} {
				if _, err := draw(func(d *drawn) { d.tool = tool }).load(); err == nil {
					c.failf("the command %q is taken", tool)
				}
			}
			if _, err := draw(func(d *drawn) { d.more = []string{"Drawn"} }).load(); err == nil {
				c.failf("two commands that differ by case only are taken")
			}
			if _, err := draw(func(d *drawn) { d.tool = "a:b" }).load(); err != nil {
				c.failf("a plain name with a colon is refused: %v", err)
			}
		}},
		{id: "SPC-05", does: "what an author writes is shown on one line, is never run, and steers no terminal",
			run: spcShown},
		{id: "SPC-07", does: "only this version of the format is read, and no key in two ways", run: func(c *testCase) {
			for _, change := range [][2]string{
				{`"aileron.connector.v1"`, `"aileron.connector.v2"`}, {`"aileron.connector.v1"`, `" aileron.connector.v1"`},
				{`"aileron.connector.v1"`, `"Aileron.Connector.V1"`},
				{`"aileron.connector.v1"`, `""`}, {`"aileron.connector.v1"`, `1`}, {`"schema_version"`, `"Schema_Version"`},
				{`"schema_version"`, `"schema"`},
				{`"hosts":`, `"HOSTS":["evil.test"],"hosts":`}, {`"hosts":`, `"hosts":["evil.test"],"hosts":`},
				{`"hosts":`, `"Hosts":`}, {`"name":"items.list"`, `"extra":1,"name":"items.list"`},
				{`"method":"GET"`, `"method":"GET","METHOD":"POST"`},
			} {
				manifest, description := draw(nil).files()
				changed := bytes.Replace(description, []byte(change[0]), []byte(change[1]), 1)
				if bytes.Equal(changed, description) {
					c.t.Fatalf("%q is not in %s", change[0], description)
				}
				if _, err := spec.Load(manifest, changed); err == nil {
					c.failf("it is taken with %s for %s", change[1], change[0])
				}
			}
		}},
		{id: "SPC-08", does: "two connectors that claim one request or one command are refused by name",
			run: func(c *testCase) {
				p := newPerson(c.t)
				p.install("api")
				rival := p.write(draw(func(d *drawn) { d.fqn, d.host, d.tool = "github://rival/api", "api.good.test", "rival" }))
				p.must("connector", "install", rival, "--yes")
				if e := p.run("proxy", "--json"); e.code != 1 || !strings.Contains(e.err, "rival") ||
					!strings.Contains(e.err, "attacks/api") {
					c.failf("a session with both: %s", e)
				}
				p.must("connector", "remove", "github://rival/api")
				p.start().stop()
				one, err := draw(nil).load()
				c.must(err)
				two, err := draw(func(d *drawn) { d.fqn, d.tool = "github://rival/drawn", "DRAWN" }).load()
				c.must(err)
				if err := (shims.Set{Connectors: []*spec.Connector{one, two}}).Conflict("sh"); err == nil ||
					!strings.Contains(err.Error(), "attacks/drawn") {
					c.failf("one command of two connectors: %v", err)
				}
			}},
	}}
}

// drawn is a connector as an author may draw it; draw makes an honest one.
type drawn struct {
	fqn, host, tool, path, summary, scope string
	more                                  []string // commands beside the first
}

func draw(change func(*drawn)) drawn {
	d := drawn{fqn: "github://attacks/drawn", host: "x.good.test", tool: "drawn", path: "/v1/items"}
	if change != nil {
		change(&d)
	}
	return d
}

func (d drawn) files() (manifest, description []byte) {
	operation := map[string]any{"name": "items.list", "method": "GET", "path": d.path, "hosts": []string{d.host},
		"credential": "bearer", "summary": d.summary}
	var tools []any
	for _, name := range append([]string{d.tool}, d.more...) {
		tools = append(tools, map[string]any{"name": name, "description": d.summary, "operations": []any{operation}})
	}
	description, err := json.Marshal(map[string]any{"schema_version": spec.Schema,
		"connector": map[string]any{"fqn": d.fqn, "version": "1.0.0"}, "tools": tools})
	if err != nil {
		panic(err)
	}
	scope, err := json.Marshal(d.scope) // TOML's basic strings escape as JSON's do
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, "[connector]\nname = %q\nversion = \"1.0.0\"\n[capabilities.network]\nhosts = "+
		"[%q]\n[capabilities.credential]\nkind = \"bearer\"\nscope = %s\n[provides]\nintents = [\"a\"]\n",
		d.fqn, d.host, scope), description
}

func (d drawn) load() (*spec.Connector, error) { return spec.Load(d.files()) }

// write puts the files into a directory of their own.
func (p *person) write(d drawn) string {
	p.t.Helper()
	dir, err := os.MkdirTemp(p.dir, "source-")
	if err != nil {
		p.t.Fatal(err)
	}
	manifest, description := d.files()
	for name, data := range map[string][]byte{spec.ManifestFile: manifest, spec.SpecFile: description} {
		must.Do(p.t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}

// eventually asks until it is so.
func (c *testCase) eventually(what string, so func() bool) {
	if !harness.Poll(c.s.patience, 10*time.Millisecond, so) {
		c.failf("it never happened: %s", what)
	}
}

// installed is the directory of a person's only connector.
func (p *person) installed() string {
	p.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(p.home, "store", "connectors", "sha256", "*"))
	if err != nil || len(dirs) != 1 {
		p.t.Fatalf("%d connectors are installed, %v", len(dirs), err)
	}
	return dirs[0]
}

// spcChanged changes an installed connector under a running session.
func spcChanged(c *testCase) {
	p := newPerson(c.t)
	p.install("plain")
	dir := p.installed()
	s := p.start()
	defer s.stop()
	d := &testCase{t: c.t, s: &s.subject, name: c.name}
	description := filepath.Join(dir, spec.SpecFile)
	honest, err := os.ReadFile(description)
	c.must(err)
	aside := filepath.Join(p.dir, "aside")
	for name, change := range map[string]struct{ do, undo func() error }{
		"another path": {func() error {
			return os.WriteFile(description, bytes.ReplaceAll(honest, []byte("/v1/items"), []byte("/v1/admin")), 0o600)
		}, func() error { return os.WriteFile(description, honest, 0o600) }},
		"one byte of the manifest": {func() error { return flip(filepath.Join(dir, spec.ManifestFile)) },
			func() error { return flip(filepath.Join(dir, spec.ManifestFile)) }},
		"a binary": {func() error {
			return os.WriteFile(filepath.Join(dir, "connector.bin"), []byte("x"),
				0o600)
		}, func() error { return os.Remove(filepath.Join(dir, "connector.bin")) }},
		"a link to a file": {func() error {
			return errors.Join(os.Rename(description, aside),
				os.Symlink(aside, description))
		},
			func() error { return errors.Join(os.Remove(description), os.Rename(aside, description)) }},
		"a link to the directory": {func() error { return errors.Join(os.Rename(dir, aside), os.Symlink(aside, dir)) },
			func() error { return errors.Join(os.Remove(dir), os.Rename(aside, dir)) }},
	} {
		before := p.last()
		c.must(change.do())
		d.eventually(name+": it is refused", func() bool {
			if a := d.get("plain.good.test", "/v1/admin"); a.status != 403 {
				c.failf("%s: /v1/admin: %s", name, a)
			}
			return d.get("plain.good.test", "/v1/items").reason == "host_not_allowed"
		})
		if !slices.ContainsFunc(p.rows(before), func(r audit.Row) bool {
			return r.Event == audit.EventConnectorVerifyFailed && r.Reason == "hash_mismatch"
		}) {
			c.failf("%s: no row says that the verification failed", name)
		}
		if e := p.run("proxy", "--json"); e.code != 1 || !strings.Contains(e.err, "changed") {
			c.failf("%s: a new session: %s", name, e)
		}
		c.must(change.undo())
		d.eventually(name+": it serves again", func() bool { return d.get("plain.good.test", "/v1/items").status == 200 })
	}
	for _, h := range c.hits("plain.good.test") {
		if strings.Contains(h.Target, "admin") {
			c.failf("the origin got %s", h.Target)
		}
	}
	c.fails = append(c.fails, d.fails...)
}

func flip(path string) error {
	data, err := os.ReadFile(path)
	if err == nil {
		data[len(data)/2] ^= 1
		err = os.WriteFile(path, data, 0o600)
	}
	return err
}

// spcSwapped exchanges a file again and again while it is loaded: what is
// parsed must be what was hashed.
func spcSwapped(c *testCase) {
	p := newPerson(c.t)
	s, err := store.Open(filepath.Join(p.dir, "store"))
	c.must(err)
	in, err := s.Install(c.t.Context(), p.write(draw(nil)), store.InstallOptions{})
	c.must(err)
	file := filepath.Join(p.dir, "store", "connectors", "sha256", strings.TrimPrefix(in.Connector.Hash, "sha256:"),
		spec.SpecFile)
	_, honest := draw(nil).files()
	_, evil := draw(func(d *drawn) { d.path = "/v1/admin" }).files()
	done, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			tmp := file + ".new"
			_ = os.WriteFile(tmp, [][]byte{evil, honest}[i%2], 0o600)
			_ = os.Rename(tmp, file)
		}
	}()
	taken, refused := 0, 0
	for end := time.Now().Add(patience); (taken < 20 || refused < 20) && time.Now().Before(end); {
		got, err := s.Load(in.Connector.Hash)
		if err != nil {
			refused++
			continue
		}
		if taken++; got.Tools[0].Operations[0].Path.String() != "/v1/items" {
			c.failf("what was loaded is not what was hashed")
		}
	}
	close(done)
	<-swapped
	if taken == 0 || refused == 0 {
		c.failf("taken %d times, refused %d times: the exchange was not met", taken, refused)
	}
}

// spcShown puts into every text what a shell, a terminal or a reader could
// take for more.
func spcShown(c *testCase) {
	for _, text := range []string{"a\nb", "a\rb", "\x1b[2J", "a\x00b", "a\u0085b", "a\u007fb", "a\u202eb", "a\u2028b",
		"a\u2066b", "a\u200bb"} {
		if _, err := draw(func(d *drawn) { d.summary = text }).load(); err == nil {
			c.failf("the text %q is taken", text)
		}
		if _, err := draw(func(d *drawn) { d.scope = text }).load(); err == nil {
			c.failf("the scope %q is taken", text)
		}
	}
	p := newPerson(c.t)
	pwned := filepath.Join(p.dir, "pwned")
	p.env = append(p.env, "PAGER=false")
	text := "$(touch " + pwned + ") `touch " + pwned + "` ';touch " + pwned + ";' %s%n EOF -- \\x1b[2J"
	d := draw(func(d *drawn) { d.summary, d.scope = text, "$(touch "+pwned+")" })
	dir := p.write(d)
	told := p.must("spec", "validate", filepath.Join(dir, spec.SpecFile)).out
	told += p.must("connector", "install", dir, "--yes").String()
	told += p.must("connector", "show", "github://attacks/drawn").String() + p.must("connector", "list").String() +
		p.must("connector", "verify").String()
	s := p.start("--env=false")
	told += string(s.logs())
	s.stop()
	loaded, err := d.load()
	c.must(err)
	set := shims.Set{Connectors: []*spec.Connector{loaded}}
	tools := string(set.ToolsFile())
	for _, command := range set.Commands() {
		file := filepath.Join(c.t.TempDir(), command.Name)
		c.must(os.WriteFile(file, command.Script, 0o600))
		for _, args := range [][]string{{"--help"}, {loaded.Tools[0].Operations[0].Name, "--help"}} {
			help, err := exec.Command("sh", append([]string{file}, args...)...).CombinedOutput()
			c.must(err)
			if !strings.Contains(string(help), "EOF") {
				c.failf("the help has no text of the author: %s", help)
			}
			told += string(help)
		}
	}
	if _, err := os.Stat(pwned); err == nil {
		c.failf("a text was run")
	}
	invisible := regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}` +
		`\x{200b}-\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]`)
	if odd := invisible.FindString(told + tools); odd != "" {
		c.failf("%q reaches a terminal or the box", odd)
	}
	if strings.Contains(tools, "EOF") { // it is in the command's help
		c.failf("an author's text stands in tools.txt")
	}
	lines := slices.DeleteFunc(strings.Split(tools, "\n"),
		func(line string) bool { return !strings.Contains(line, "drawn") })
	if len(lines) != 1 {
		c.failf("%d lines of tools.txt are of the tool: %q", len(lines), lines)
	}
}
