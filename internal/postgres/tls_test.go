package postgres

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
)

func TestAConnectionToAnotherHostIsVerifiedWhateverNamesIt(t *testing.T) {
	service := filepath.Join(t.TempDir(), "services")
	if err := os.WriteFile(service, []byte("[far]\nhost=db.example\n\n[here]\nhost=/tmp\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGSERVICEFILE", service)
	for _, c := range []struct {
		url, service, host string
		verified           bool
	}{
		{"postgres://db.example/audit", "", "", true},
		{"postgres:///audit", "", "db.example", true},
		{"postgres:///audit", "far", "", true},
		{"postgres:///audit?host=/tmp,db.example", "", "", true},
		{"postgres:///audit?host=localhost,db.example", "", "", true},
		{"postgres:///audit", "here", "db.example", false},
		{"postgres://127.0.0.1/audit", "", "", false},
		{"postgres://db.example/audit?sslmode=disable", "", "", false},
	} {
		t.Setenv("PGSERVICE", c.service)
		if t.Setenv("PGHOST", c.host); c.service == "" {
			_ = os.Unsetenv("PGSERVICE") // Setenv restores it
		}
		d, err := Parse(c.url, os.Getenv)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		verified := true
		check := func(host string, with *tls.Config) {
			is := with != nil && !with.InsecureSkipVerify && with.ServerName == host
			verified = verified && (is || isLocal(host) && c.verified)
		}
		check(d.config.Host, d.config.TLSConfig)
		for _, f := range d.config.Fallbacks {
			check(f.Host, f.TLSConfig)
		}
		if verified != c.verified {
			t.Errorf("%+v: verified = %v", c, verified)
		}
	}
}
