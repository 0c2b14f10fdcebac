package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/spec"
)

// config is <home>/config.toml. Flags and the environment beat it; a missing
// file is an empty one; an unknown key is an error.
type config struct {
	Format   int `toml:"format"` // of the file; 0 is the first
	Upstream struct {
		Resolve []string `toml:"resolve"` // HOST:PORT:ADDR
		CA      string   `toml:"ca"`      // file of extra roots
		Proxy   string   `toml:"proxy"`   // http://…
	} `toml:"upstream"`
	Tunnel []string `toml:"tunnel"` // HOST or HOST:PORT, not decrypted
	Audit  struct {
		Durability string `toml:"durability"` // normal (default) or full
	} `toml:"audit"`
	Limits  limitsConfig  `toml:"limits"`
	Sandbox sandboxConfig `toml:"sandbox"`
}

// sandboxConfig is what a box may use, and how long its engine is waited for.
type sandboxConfig struct {
	Memory        *memorySize `toml:"memory"` // nil: the default; 0: no limit
	CPUs          *cpuCount   `toml:"cpus"`
	EngineTimeout duration    `toml:"engine_timeout"`
}

// limitsConfig holds durations such as "10s" and sizes in bytes; absent means
// the default of docs/configuration.md.
type limitsConfig struct {
	HeadTimeout           duration `toml:"head_timeout"`
	HandshakeTimeout      duration `toml:"handshake_timeout"`
	IdleTimeout           duration `toml:"idle_timeout"`
	BodyTimeout           duration `toml:"body_timeout"`
	WriteTimeout          duration `toml:"write_timeout"`
	DialTimeout           duration `toml:"dial_timeout"`
	ResponseHeaderTimeout duration `toml:"response_header_timeout"`
	UpstreamIdleTimeout   duration `toml:"upstream_idle_timeout"`
	DrainTimeout          duration `toml:"drain_timeout"`
	HeadBytes             int      `toml:"head_bytes"`
	HeadFields            int      `toml:"head_fields"`
	BodyBytes             int64    `toml:"body_bytes"`
	Connections           int      `toml:"connections"`
	Requests              int      `toml:"requests"`
	Rate                  int      `toml:"rate"`
	MemoryBytes           int64    `toml:"memory_bytes"`
}

// duration is a positive time.Duration written as "1m30s".
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v <= 0 {
		err = errors.New("it is not positive")
	}
	*d = duration(v)
	return err
}

func readConfig(home string) (config, error) {
	var c config
	path := filepath.Join(home, "config.toml")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return config{}, nil
	}
	if err != nil {
		return config{}, &configError{err}
	}
	if err := checkConfigFormat(raw, path); err != nil {
		return config{}, err
	}
	meta, err := toml.Decode(string(raw), &c)
	if err != nil {
		return config{}, hint.New(fmt.Errorf("read %s: %w", path, err), "mend the file, or remove it to get the defaults")
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		var names []string
		for _, k := range extra {
			names = append(names, k.String())
		}
		return config{}, hint.New(fmt.Errorf("read %s: unknown key %s", path, strings.Join(names, ", ")), "docs/configuration.md lists the keys")
	}
	if err := c.Limits.check(); err != nil {
		return config{}, hint.New(fmt.Errorf("read %s: %w", path, err), "leave the key out to get its default")
	}
	return c, nil
}

// configFormat is the newest format of config.toml that this aileron knows.
const configFormat = format.First

// checkConfigFormat returns a *format.Error for a file of a newer format,
// whatever else is in it.
func checkConfigFormat(raw []byte, path string) error {
	var f struct {
		Format any `toml:"format"`
	}
	if _, err := toml.Decode(string(raw), &f); err != nil || f.Format == nil {
		return nil //nolint:nilerr // the whole is decoded next
	}
	if n, ok := f.Format.(int64); !ok || n > configFormat {
		return &format.Error{Path: path, Format: fmt.Sprint(f.Format), Known: configFormat}
	}
	return nil
}

// configError is a config.toml that is there and could not be read.
type configError struct{ err error }

func (e *configError) Error() string { return "read the configuration: " + e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

// ErrorClass and ErrorReason are for --json.
func (*configError) ErrorClass() string  { return "unavailable" }
func (*configError) ErrorReason() string { return "config_unreadable" }

// minMemory is the smallest memory_bytes with which a session can serve one
// connection, which may have only a part of it, with an upload over HTTP/2.
const minMemory = 1 << 20

// check returns an error that names the limit with which no session can work.
func (l limitsConfig) check() error {
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

// tunnelHosts reads the list of hosts that are tunnelled as they are. One that
// a connector names cannot be among them: it is either decrypted or not.
func tunnelHosts(list []string, index *spec.Index) ([]string, error) {
	var out []string
	for _, entry := range list {
		a, err := hostport.Parse(entry, 443)
		if err != nil || a.Addr.IsValid() {
			return nil, hint.New(fmt.Errorf("read config.toml: tunnel names %q, which is no plain HOST or HOST:PORT", entry), `write it as tunnel = ["pinned.example", "other.example:8443"]`)
		}
		if index.Covers(a.Host, a.Port) {
			return nil, hint.New(fmt.Errorf("read config.toml: tunnel names %s, and an installed connector does too", a), "take it off the list, or remove the connector: what is not decrypted can be neither matched nor injected")
		}
		out = append(out, a.String())
	}
	return out, nil
}

// readBounded reads a file of at most most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("read %s: it is a directory", path)
	}
	if info.Size() > most {
		return nil, fmt.Errorf("read %s: it is larger than %d bytes", path, most)
	}
	return os.ReadFile(path)
}
