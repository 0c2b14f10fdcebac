package postgres

import (
	"strings"
	"testing"
)

func TestAnErrorHasNoPasswordOfItsURL(t *testing.T) {
	for _, text := range []string{
		"postgres://u:canary@h:port/db", "postgres://u:canary@h/db?sslmode=canary", "postgres://u:can%ary@h/db",
		"postgres://h/db?password=canary&sslmode=nope", "mysql://u:canary@h/db",
		"postgres://u:canary@h/db?servicefile=canary",
		"postgres://u:canary@[h/db", "user=u password=canary",
	} {
		_, err := Parse(text, func(string) string { return "" })
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
	d, err := Parse("postgres://u:canary@db.example/audit", func(string) string { return "" })
	if err != nil || d.String() != "postgres db.example:5432 audit" {
		t.Errorf("Parse: %v, %v", d, err)
	}
}

// A connection to another host is encrypted and verified, unless the URL or the environment says otherwise.
func TestAConnectionToAnotherHostIsVerified(t *testing.T) {
	none := func(string) string { return "" }
	d, err := Parse("postgres://u@db.example/audit", none)
	if err != nil {
		t.Fatal(err)
	}
	if c := d.config; c.TLSConfig == nil || c.TLSConfig.InsecureSkipVerify || c.TLSConfig.ServerName != "db.example" ||
		len(c.Fallbacks) > 0 {
		t.Errorf("the connection has %+v, and the fallbacks %v", c.TLSConfig, c.Fallbacks)
	}
	for _, text := range []string{"postgres://u@db.example/audit?sslmode=disable", "postgres://u@127.0.0.1/audit",
		"postgres:///audit?host=/run/postgresql"} {
		d, err := Parse(text, none)
		if err != nil {
			t.Fatal(err)
		}
		if text != "postgres://u@127.0.0.1/audit" && d.config.TLSConfig != nil {
			t.Errorf("%s is encrypted", text)
		}
	}
}
