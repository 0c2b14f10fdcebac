// Package config reads config.toml, the settings of one home:
//
//	conf, err := config.Read(home)
//
// A missing file is an empty one. A key that this version does not know, a
// value with which no session can work and a file of a newer aileron are
// refused: a setting that its owner believes in must not be ignored. Flags and
// the environment come before the file; the commands merge them.
// docs/configuration.md describes every key.
//
// This file is config.toml, and project.go the file of a project.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Config is the content of config.toml. Its zero value means the defaults.
type Config struct {
	Format   int `toml:"format"` // of the file; 0 is the first
	Upstream struct {
		Resolve []string `toml:"resolve"` // HOST:PORT:ADDR
		CA      string   `toml:"ca"`      // file of extra roots
		Proxy   string   `toml:"proxy"`   // http://…, https://…, socks5://… or socks5h://…
		NoProxy []string `toml:"no_proxy"`

		AllowRanges []string `toml:"allow_ranges"` // CIDR
	} `toml:"upstream"`
	Sources Sources  `toml:"sources"`
	Tunnel  []string `toml:"tunnel"` // HOST or HOST:PORT, not decrypted
	Audit   struct {
		Durability string `toml:"durability"` // normal (default) or full
		Ship       string `toml:"ship"`       // the URL to which sessions ship the log, or @FILE; "": they do not
	} `toml:"audit"`
	Limits   Limits   `toml:"limits"`
	Sandbox  Sandbox  `toml:"sandbox"`
	Approval Approval `toml:"approval"`
	Budget   Budget   `toml:"budget"`
	Prices   Prices   `toml:"prices"`
}

// Approval is how a person is asked about requests that wait for an approval.
type Approval struct {
	Hold   Duration `toml:"hold"`   // how long a request is held; 0: 55 s
	Notify []string `toml:"notify"` // the command that tells a person of a request; nil: none
	// Approve is METHOD PATH, as of --approve: requests that a person is asked about in every session; nil: it was never
	// chosen.
	Approve []string `toml:"approve"`
	// Decider is asked before the person; the zero value: none is.
	Decider Decider `toml:"decider"`
}

// maxHold bounds how long a request is held for an approval: clients and what is between wait no longer.
const maxHold = 10 * time.Minute

// check returns an error that names the setting with which no request can be held.
func (a Approval) check() error {
	if len(a.Notify) > 0 && a.Notify[0] == "" {
		return errors.New(`approval.notify has no command; write it as notify = ["notify-send", "aileron"]`)
	}
	if a.Hold > Duration(maxHold) {
		return fmt.Errorf("approval.hold is %v; it must be at most %v", time.Duration(a.Hold), maxHold)
	}
	return nil
}

// Sandbox is what a sandbox may use, and how long aileron waits for its engine.
type Sandbox struct {
	Memory        *MemorySize `toml:"memory"`     // nil: the default; 0: no limit
	CPUs          *CPUCount   `toml:"cpus"`       // likewise
	Keep          *bool       `toml:"keep"`       // an agent's state; nil: yes
	Unattended    *bool       `toml:"unattended"` // agents do not ask; nil: they do, and setup asks for it
	EngineTimeout Duration    `toml:"engine_timeout"`
	Packages      []string    `toml:"packages"` // of Debian, added to aileron's own images
}

// Sources is where connectors are fetched from, and how long a source may make no
// progress. The base URLs are https; the command that uses them checks that.
type Sources struct {
	GitHub      string   `toml:"github"` // "": https://github.com
	GitLab      string   `toml:"gitlab"` // "": https://gitlab.com
	Hub         string   `toml:"hub"`    // "": there is none
	IdleTimeout Duration `toml:"idle_timeout"`
}

// Limits bounds what clients and upstreams may use. Sizes are in bytes; 0 means
// the default of docs/configuration.md.
type Limits struct {
	HeadTimeout           Duration `toml:"head_timeout"`
	HandshakeTimeout      Duration `toml:"handshake_timeout"`
	IdleTimeout           Duration `toml:"idle_timeout"`
	BodyTimeout           Duration `toml:"body_timeout"`
	BodyPauseTimeout      Duration `toml:"body_pause_timeout"`
	WriteTimeout          Duration `toml:"write_timeout"`
	DialTimeout           Duration `toml:"dial_timeout"`
	ResponseHeaderTimeout Duration `toml:"response_header_timeout"`
	UpstreamIdleTimeout   Duration `toml:"upstream_idle_timeout"`
	DrainTimeout          Duration `toml:"drain_timeout"`
	HeadBytes             int      `toml:"head_bytes"`
	HeadFields            int      `toml:"head_fields"`
	BodyBytes             int64    `toml:"body_bytes"`
	Connections           int      `toml:"connections"`
	Requests              int      `toml:"requests"`
	Rate                  int      `toml:"rate"`
	MemoryBytes           int64    `toml:"memory_bytes"`
}

// Duration is a positive [time.Duration], written as "1m30s".
type Duration time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	switch _, bare := strconv.ParseFloat(string(text), 64); {
	case err == nil && v <= 0:
		err = errors.New("it is not positive")
	case err != nil && bare == nil:
		err = fmt.Errorf("%[1]q has no unit; write %[1]ss, %[1]sm or %[1]sh", string(text))
	}
	*d = Duration(v)
	return err
}

// Read reads config.toml of a home. An error is an [*UnreadableError] for a
// file that could not be read, and a [*format.Error] for one of a newer
// aileron.
func Read(home string) (Config, error) {
	var c Config
	path := filepath.Join(home, "config.toml")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, &UnreadableError{err}
	}
	if err := checkFormat(raw, path); err != nil {
		return Config{}, err
	}
	meta, err := toml.Decode(string(raw), &c)
	if err != nil {
		return Config{}, hint.New(fmt.Errorf("read %s: %w", path, err), "correct the file, or remove it to get the defaults")
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		var names []string
		for _, k := range extra {
			names = append(names, k.String())
		}
		err := fmt.Errorf("read %s: unknown key %s", path, strings.Join(names, ", "))
		return Config{}, hint.New(err, "docs/configuration.md lists the keys")
	}
	if err := errors.Join(c.Limits.check(), c.Approval.check(), c.Budget.check(), c.Prices.check()); err != nil {
		return Config{}, hint.New(fmt.Errorf("read %s: %w", path, err), "leave the key out to get its default")
	}
	return c, nil
}

// HostProxy returns the variable of this process's environment that names a proxy for https, or "".
func HostProxy() string {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// newestFormat is the newest format of config.toml that this aileron knows.
const newestFormat = format.First

// checkFormat returns a [*format.Error] for a file of a newer format, whatever
// else is in it.
func checkFormat(raw []byte, path string) error {
	var f struct {
		Format any `toml:"format"`
	}
	if _, err := toml.Decode(string(raw), &f); err != nil || f.Format == nil {
		return nil //nolint:nilerr // the whole is decoded next
	}
	if n, ok := f.Format.(int64); !ok || n > newestFormat {
		return &format.Error{Path: path, Format: fmt.Sprint(f.Format), Known: newestFormat}
	}
	return nil
}

// UnreadableError is returned for a config.toml that exists and could not be
// read.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return "read the configuration: " + e.Err.Error() }
func (e *UnreadableError) Unwrap() error { return e.Err }

// ErrorClass is the class of CONTRACT section 4.
func (*UnreadableError) ErrorClass() string { return "unavailable" }

// ErrorReason is the reason of CONTRACT section 4.
func (*UnreadableError) ErrorReason() string { return "config_unreadable" }

// minMemory is the smallest memory_bytes with which a session can serve one
// connection, which may have only a part of it, with an upload over HTTP/2.
const minMemory = 1 << 20

// check returns an error that names the limit with which no session can work.
func (l Limits) check() error {
	for _, limit := range []struct {
		key   string
		value int64
	}{
		{"head_bytes", int64(l.HeadBytes)}, {"head_fields", int64(l.HeadFields)}, {"body_bytes", l.BodyBytes},
		{"connections", int64(l.Connections)}, {"requests", int64(l.Requests)}, {"rate", int64(l.Rate)},
		{"memory_bytes", l.MemoryBytes},
	} {
		if limit.value < 0 {
			return fmt.Errorf("limits.%s is %d; it must not be negative", limit.key, limit.value)
		}
	}
	if l.MemoryBytes != 0 && l.MemoryBytes < minMemory {
		return fmt.Errorf("limits.memory_bytes is %d; it must be at least %d, or no connection can be served",
			l.MemoryBytes, minMemory)
	}
	return nil
}

// MemorySize is a number of bytes, written as "512m", "4g", "1.5GiB" or a
// number; 0 and "none" mean no limit.
type MemorySize int64

// minSandboxMemory is the least memory with which a shell starts in a sandbox.
const minSandboxMemory = 16 << 20

// UnmarshalTOML implements the interface of the TOML decoder.
func (m *MemorySize) UnmarshalTOML(value any) error {
	n, err := parseMemory(fmt.Sprint(value))
	*m = MemorySize(n)
	return err
}

func parseMemory(text string) (int64, error) {
	bad := fmt.Errorf(`sandbox.memory is %q; it must be a size such as "512m" or "4g", or "none"`, text)
	number := strings.ToLower(strings.TrimSpace(text))
	if number == "none" {
		return 0, nil
	}
	unit := 1.0
	for i, suffix := range []string{"k", "m", "g", "t"} {
		for _, form := range []string{suffix + "ib", suffix + "b", suffix} {
			if rest, ok := strings.CutSuffix(number, form); ok {
				number, unit = strings.TrimSpace(rest), math.Pow(1024, float64(i+1))
				break
			}
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	switch n *= unit; {
	case err != nil || math.IsNaN(n) || n < 0 || n >= 1<<62:
		return 0, bad
	case n > 0 && n < minSandboxMemory:
		what := ""
		if unit == 1 {
			meant := number + "m"
			if n < 16 {
				meant = number + "g"
			}
			what = fmt.Sprintf(", which are bytes (did you mean %q?)", meant)
		}
		return 0, fmt.Errorf(`sandbox.memory is %q%s; it must be at least "16m", or no command starts; `+
			`"none" removes the limit`, text, what)
	}
	return int64(n), nil
}

// CPUCount is a number of CPUs; 0 and "none" mean no limit.
type CPUCount float64

// UnmarshalTOML implements the interface of the TOML decoder.
func (c *CPUCount) UnmarshalTOML(value any) error {
	text := fmt.Sprint(value)
	if text == "none" {
		*c = 0
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(n) || n < 0 || n > 1<<20:
		return fmt.Errorf(`sandbox.cpus is %q; it must be a number such as 1.5, or "none"`, text)
	case n > 0 && n < 0.01:
		return errors.New(`sandbox.cpus is less than 0.01, the least that engines accept; "none" removes the limit`)
	}
	*c = CPUCount(n)
	return nil
}
