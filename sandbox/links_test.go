package sandbox

import (
	"io/fs"
	"strings"
	"testing"
)

func TestLinksOfAnImageLeadWhereTheKernelGoes(t *testing.T) {
	dir, file := node{mode: fs.ModeDir | 0o755}, node{mode: 0o644, size: 3}
	link := func(to string) node { return node{mode: fs.ModeSymlink, link: to} }
	tree := etcTree{
		"/etc": dir, "/etc/ssl": dir, "/etc/pki": dir, "/etc/pki/tls": dir, "/etc/pki/tls/certs": dir, "/etc/pki/x.pem": file,
		"/etc/ssl/certs":                   link("../pki/tls/certs"),
		"/etc/pki/tls/certs/ca-bundle.crt": link("/etc/pki/x.pem"),
		"/etc/ssl/cert.pem":                link("certs/ca-certificates.crt"), // leads to nothing yet
		"/etc/ssl/high":                    link("../../../../../etc/pki/x.pem"),
		"/etc/ssl/out":                     link("/var/roots"),
		"/etc/a":                           link("b"), "/etc/b": link("a"),
		"/etc/self": link("self/x"),
	}
	outside := func(name string) (Entry, error) {
		if name == "/var/roots/x" {
			return Entry{Path: "/etc/pki/x.pem", There: true, Mode: fs.ModeSymlink}, nil
		}
		return Entry{Path: name}, nil
	}
	for _, c := range []struct {
		name, path string
		there      bool
		missing    string
		err        string
	}{
		{"/etc/ssl/certs/ca-bundle.crt", "/etc/pki/x.pem", true, "", ""},
		{"/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-certificates.crt", false, "", ""},
		{"/etc/ssl/high", "/etc/pki/x.pem", true, "", ""},
		{"/etc/ssl/out/x", "/etc/pki/x.pem", true, "", ""},
		{"/etc/ssl/out/y", "/var/roots/y", false, "", ""},
		{"/etc/new/deep/f", "/etc/new/deep/f", false, "/etc/new /etc/new/deep", ""},
		{"/etc/a", "", false, "", "circle"},
		{"/etc/self", "", false, "", "circle"},
		{"/etc/pki/x.pem/y", "", false, "", "not a directory"},
		{"/usr/x", "/usr/x", false, "", ""},
	} {
		got, err := tree.find(c.name, outside)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("find(%s) = %+v, %v; want an error with %q", c.name, got, err, c.err)
			}
			continue
		}
		if err != nil || got.Path != c.path || got.There != c.there || strings.Join(got.Missing, " ") != c.missing {
			t.Errorf("find(%s) = %+v, %v; want %s, there: %v, missing %q", c.name, got, err, c.path, c.there, c.missing)
		}
	}
	if got, err := (etcTree{}).find("/etc/ssl/certs/f", outside); err != nil || strings.Join(got.Missing, " ") != "/etc /etc/ssl /etc/ssl/certs" {
		t.Errorf("in an image without /etc: %+v, %v", got, err)
	}
}
