package trust_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/trust"
)

// everywhere is what every image is given.
const everywhere = "/etc/aileron/proxy/ca.pem /etc/aileron/proxy/bundle.pem /etc/aileron/proxy/trust.p12 " +
	"/etc/chromium/policies/managed/aileron.json /etc/opt/chrome/policies/managed/aileron.json " +
	"/etc/opt/chrome_for_testing/policies/managed/aileron.json /etc/firefox/policies/policies.json " +
	"/etc/aileron/tools.txt "

func TestEachDistributionTrustsTheRootInItsOwnPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		image   []string
		bundles string // names that clients read
		files   string // beside those everywhere
	}{
		{
			name: "Debian",
			image: []string{
				"etc/debian_version = 12.1", "etc/ca-certificates.conf = ", "etc/apt/apt.conf.d/",
				"etc/ssl/certs/ca-certificates.crt",
			},
			bundles: "/etc/ssl/certs/ca-certificates.crt",
			files: "/etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/aileron-session.crt " +
				"/etc/ssl/certs/HASH.0 /etc/apt/apt.conf.d/99aileron",
		},
		{
			name: "Alpine",
			image: []string{
				"etc/alpine-release = 3.22.1", "etc/ssl/certs/ca-certificates.crt", "etc/ssl/cert.pem -> certs/ca-certificates.crt",
			},
			bundles: "/etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem",
			files: "/etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/aileron-session.crt " +
				"/etc/ssl/certs/HASH.0",
		},
		{
			name: "Fedora",
			image: []string{
				"etc/pki/ca-trust/source/anchors/", "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
				"etc/pki/tls/certs/ca-bundle.crt -> /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
				"etc/pki/tls/cert.pem -> certs/ca-bundle.crt", "etc/ssl/certs -> ../pki/tls/certs",
			},
			bundles: "/etc/pki/tls/certs/ca-bundle.crt /etc/pki/tls/cert.pem /etc/ssl/certs/ca-bundle.crt " +
				"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
			files: "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/pki/ca-trust/source/anchors/aileron-session.crt " +
				"/etc/pki/tls/certs/HASH.0",
		},
		{
			name: "SUSE",
			image: []string{
				"etc/pki/trust/anchors/", "var/lib/ca-certificates/ca-bundle.pem", "var/lib/ca-certificates/pem/",
				"etc/ssl/certs -> /var/lib/ca-certificates/pem", "etc/ssl/ca-bundle.pem -> /var/lib/ca-certificates/ca-bundle.pem",
			},
			bundles: "/etc/ssl/ca-bundle.pem",
			files: "/var/lib/ca-certificates/ca-bundle.pem /etc/pki/trust/anchors/aileron-session.crt " +
				"/var/lib/ca-certificates/pem/HASH.0",
		},
		{
			name: "Arch",
			image: []string{
				"etc/ca-certificates/trust-source/anchors/", "etc/ca-certificates/extracted/tls-ca-bundle.pem",
				"etc/ssl/certs/ca-certificates.crt -> ../../ca-certificates/extracted/tls-ca-bundle.pem",
				"etc/ssl/cert.pem -> ../ca-certificates/extracted/tls-ca-bundle.pem",
			},
			bundles: "/etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem",
			files: "/etc/ca-certificates/extracted/tls-ca-bundle.pem " +
				"/etc/ca-certificates/trust-source/anchors/aileron-session.crt /etc/ssl/certs/HASH.0",
		},
		{
			name:    "two bundles with roots of their own, and an unknown distribution",
			image:   []string{"etc/ssl/cert.pem", "etc/pki/tls/cacert.pem", "etc/pki/tls/certs/"},
			bundles: "/etc/ssl/cert.pem /etc/pki/tls/cacert.pem",
			files:   "/etc/ssl/cert.pem /etc/pki/tls/cacert.pem /etc/ssl/certs/HASH.0 /etc/pki/tls/certs/HASH.0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			image := w.image(c.image...)
			put := w.install(t, image)
			for name := range strings.FieldsSeq(c.bundles) {
				if got := in(t, image, put, name); got != string(w.own)+string(w.session) {
					t.Errorf("%s is\n%swant the image's roots and the session's", name, got)
				}
			}
			if put[trust.CAFile] != string(w.session) || put[trust.BundleFile] != string(w.own)+string(w.session) {
				t.Errorf("the CA is\n%s, the bundle is\n%s", put[trust.CAFile], put[trust.BundleFile])
			}
			want := strings.Fields(everywhere + strings.ReplaceAll(c.files, "HASH", w.hash(t)))
			var got []string
			for name, data := range put {
				if data != "" {
					got = append(got, name)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("files:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if w.log.Len() > 0 {
				t.Errorf("warnings: %s", w.log.String())
			}
		})
	}
}

// An image without roots has the host's, where its distribution keeps them.
func TestAnImageWithoutRootsHasTheHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		image  []string
		bundle string
	}{
		{"nothing at all", nil, "/etc/ssl/certs/ca-certificates.crt"},
		{"Debian before ca-certificates", []string{"etc/debian_version = 12.1"}, "/etc/ssl/certs/ca-certificates.crt"},
		{"Fedora", []string{"etc/pki/ca-trust/"}, "/etc/pki/tls/certs/ca-bundle.crt"},
		{"SUSE", []string{"etc/pki/trust/"}, "/etc/ssl/ca-bundle.pem"},
		{"an empty bundle", []string{"etc/ssl/cert.pem =  \n"}, "/etc/ssl/cert.pem"},
		{"a link to nothing", []string{"etc/ssl/certs/ca-certificates.crt -> /var/none/roots.pem"}, "/var/none/roots.pem"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			put := w.install(t, w.image(c.image...))
			for _, name := range []string{c.bundle, trust.BundleFile} {
				if put[name] != string(w.host)+string(w.session) {
					t.Errorf("%s is\n%s\nwant the host's roots and the session's", name, put[name])
				}
			}
		})
	}
	t.Run("nor has the host any", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		none := errors.New("this host has no bundle")
		w.options.HostRoots = func() ([]byte, error) { return nil, none }
		_, err := trust.Install(w.image(), w.session, w.options)
		if !errors.Is(err, none) || errors.As(err, new(*trust.Error)) || !strings.Contains(hint.Of(err), "ca-certificates") {
			t.Errorf("Install: %v, hint %q; want the host's error", err, hint.Of(err))
		}
	})
}

// A root file system that is read-only has each file mounted over what is there:
// where the mount's target is a link, engines disagree. See also world.install.
func TestEveryFileCanBeMounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	image := w.image("etc/ssl -> /opt/tls", "opt/tls/cert.pem -> certs/all.pem", "opt/tls/certs/all.pem",
		"etc/aileron -> ../srv/session", "etc/debian_version = 12")
	put := w.install(t, image)
	for _, name := range []string{
		"/opt/tls/certs/all.pem", "/opt/tls/certs/" + w.hash(t) + ".0",
		"/usr/local/share/ca-certificates/aileron-session.crt",
	} {
		if !strings.HasSuffix(put[name], string(w.session)) {
			t.Errorf("%s is %q, want the session's root in it", name, put[name])
		}
	}
	for _, name := range []string{trust.CAFile, trust.BundleFile, "/etc/ssl/cert.pem"} {
		if got := in(t, image, put, name); !strings.HasSuffix(got, string(w.session)) {
			t.Errorf("a client that reads %s finds\n%s", name, got)
		}
	}
}

func TestTheFirstFreeHashLinkIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hash := "etc/ssl/certs/" + w.hash(t)
	put := w.install(t, w.image("etc/ssl/cert.pem", hash+".0", hash+".1 -> nothing"))
	if put["/"+hash+".0"] != "" || put["/etc/ssl/certs/nothing"] != string(w.session) {
		t.Errorf("with .0 taken and .1 a link to nothing: %q", put)
	}
	taken := []string{"etc/ssl/cert.pem"}
	for _, n := range strings.Split("01234567", "") {
		taken = append(taken, hash+"."+n)
	}
	for name := range w.install(t, w.image(taken...)) {
		if strings.HasPrefix(name, "/"+hash) {
			t.Errorf("%s is put although all are taken", name)
		}
	}
}

// The zero Options work: neither variables, nor files, nor a log.
func TestTheZeroOptionsWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	image := w.image("etc/ssl/cert.pem", "etc/firefox/policies/policies.json = {")
	got, err := trust.Install(image, w.session, trust.Options{})
	if err != nil || len(got.Files) == 0 {
		t.Errorf("Install = %v, %v", got, err)
	}
	if got, err := trust.Install(image, []byte("no root"), trust.Options{}); err == nil {
		t.Errorf("without a root: %d files", len(got.Files))
	}
}
