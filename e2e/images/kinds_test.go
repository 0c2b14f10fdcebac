package images

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// get is the client's command in an image.
func get(path string) []string { return append([]string{path, url}, ways...) }

// script runs the client and then a shell's words.
func script(text string) []string {
	return []string{"sh", "-c", `get "$@"; ` + text, "-", url, ways[0], ways[1], ways[2], ways[3]}
}

func TestADistributionKeepsItsLinksAndItsAnchors(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			image, anchors, bundle, links, want string
			others                              []string // of other families
		}{
			{"alpine", "/usr/local/share/ca-certificates", "/etc/ssl/cert.pem", "/etc/ssl/cert.pem", "certs/ca-certificates.crt",
				[]string{"/etc/pki", "/etc/ca-certificates/trust-source", "/etc/apt"}},
			{"rhel", "/etc/pki/ca-trust/source/anchors", "/etc/pki/tls/certs/ca-bundle.crt",
				"/etc/ssl/certs /etc/pki/tls/cert.pem /etc/pki/tls/certs/ca-bundle.crt",
				"../pki/tls/certs certs/ca-bundle.crt /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
				[]string{"/usr/local/share/ca-certificates", "/etc/pki/trust", "/etc/apt"}},
			{"suse", "/etc/pki/trust/anchors", "/etc/ssl/ca-bundle.pem", "/etc/ssl/certs /etc/ssl/ca-bundle.pem",
				"/var/lib/ca-certificates/pem /var/lib/ca-certificates/ca-bundle.pem",
				[]string{"/usr/local/share/ca-certificates", "/etc/pki/ca-trust", "/etc/ca-certificates"}},
			{"arch", "/etc/ca-certificates/trust-source/anchors", "/etc/ssl/cert.pem",
				"/etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem",
				"../../ca-certificates/extracted/tls-ca-bundle.pem ../ca-certificates/extracted/tls-ca-bundle.pem",
				[]string{"/usr/local/share/ca-certificates", "/etc/pki"}},
			{"debian", "/usr/local/share/ca-certificates", "/etc/ssl/certs/ca-certificates.crt", "", "",
				[]string{"/etc/pki", "/etc/ca-certificates/trust-source"}},
		} {
			t.Run(c.image, func(t *testing.T) {
				t.Parallel()
				p := newPerson(t, engine)
				r := p.box(ref(c.image), nil, script(`
					for l in `+c.links+`; do readlink "$l"; done
					ca=$(cat /etc/aileron/proxy/ca.pem); [ "$(cat `+c.anchors+`/aileron-session.crt)" = "$ca" ] && echo anchored
					for d in /etc/ssl/certs /etc/pki/tls/certs; do
						[ ! -d $d ] || ! [ -x /usr/bin/openssl ] ||
							openssl verify -no-CAfile -no-CAstore -CApath $d /etc/aileron/proxy/ca.pem >/dev/null ||
							echo no hash link in $d
					done
					[ "$(cat `+c.bundle+`)" = "$(cat /etc/aileron/proxy/bundle.pem)" ] && echo same bundle
					for n in `+strings.Join(c.others, " ")+`; do [ ! -e "$n" ] || echo "foreign $n"; done`))
				p.works(r)
				rest := strings.Fields(r.out[strings.LastIndex(r.out, `"}`)+2:])
				if got, want := strings.Join(rest, " "), strings.TrimSpace(c.want+" anchored same bundle"); !strings.HasSuffix(got,
					want) || strings.HasSuffix(got, "/"+want) {
					t.Errorf("the links and files are %q, want %q at the end", got, want)
				}
			})
		}
	})
}

// What the distribution's own program makes of the store keeps the CA. Debian's starts several programs for each root:
// one of them, beside the session's, shows as much as all 140, which took five minutes on a busy machine.
func TestARebuiltStoreKeepsTheCA(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for image, rebuild := range map[string]string{
			"debian": "sed -i '0,/^mozilla/!d' /etc/ca-certificates.conf; update-ca-certificates >/dev/null 2>&1",
			"rhel":   "update-ca-trust"} {
			t.Run(image, func(t *testing.T) {
				t.Parallel()
				p := newPerson(t, engine)
				p.works(p.box(ref(image), nil, []string{"sh", "-euc", rebuild + `
					get "$@"; bundle=/etc/ssl/certs/ca-certificates.crt; [ -e $bundle ] || bundle=/etc/pki/tls/certs/ca-bundle.crt
					env -u CURL_CA_BUNDLE -u SSL_CERT_FILE curl -sSf --cacert $bundle ` + url,
					"-", url, ways[0], ways[1], ways[2], ways[3]}))
			})
		}
	})
}

func TestAnImageWithAlmostNothingInItWorks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for _, image := range []string{"scratch", "distroless"} {
			t.Run(image, func(t *testing.T) {
				t.Parallel()
				p := newPerson(t, engine)
				if image == "distroless" {
					must.Do(t, os.Chmod(p.project, 0o777))
				}
				p.works(p.box(ref(image), nil, get("/get")))
			})
		}
	})
}

func TestOddImagesWork(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			image, ask, want string
			warns            string
			open             bool // everyone may write to the project, so the image's user is kept
			flags            []string
		}{
			{image: "named", open: true, ask: `id -un; touch "$HOME/made"; echo "$HOME"`, want: "app /home/app"},
			{image: "named", ask: "id -u; touch made", want: "0"}, // the project is root's
			{image: "number", open: true, ask: `id -u; id -g; touch made "$HOME/made"; echo "$HOME"`,
				want: "4321 4321 /home/agent"},
			{image: "noroots"},
			{image: "blank"},
			{image: "linked", ask: "readlink /etc/ssl", want: "/opt/tls"},
			{image: "dangling", ask: "readlink /etc/ssl/certs/ca-certificates.crt", want: "/var/lib/none/roots.pem"},
			{image: "entry"},
			{image: "elsewhere", open: true, ask: `touch "$HOME/made"; echo "$HOME"`, want: "/data/home"},
			{image: "volumes", ask: `touch "$HOME/made" && ls -d /etc/ssl/openssl.cnf`, want: "/etc/ssl/openssl.cnf"},
			{image: "debian", flags: []string{"--read-only"}, ask: "touch /etc/x 2>/dev/null; [ -e /etc/x ] || echo fixed",
				want: "fixed"},
			{image: "scratch", flags: []string{"--read-only"}},
			{image: "volumes", flags: []string{"--read-only"}, ask: `touch "$HOME/made" && ls -d /etc/ssl/openssl.cnf`,
				want: "/etc/ssl/openssl.cnf"},
			{image: "linked", flags: []string{"--read-only"}},
			{image: "dangling", flags: []string{"--read-only"}},
			{image: "rhel", flags: []string{"--read-only"}, ask: "touch /etc/x 2>/dev/null; [ -e /etc/x ] || echo fixed",
				want: "fixed"},
			{image: "policies", ask: "cat /etc/firefox/policies/policies.json",
				want: `{"policies":{"Certificates":{"Install":["/opt/own.pem","/etc/aileron/proxy/ca.pem"]},` +
					`"DisableTelemetry":true}}`},
			{image: "null", ask: "cat /etc/firefox/policies/policies.json", want: `["/etc/aileron/proxy/ca.pem"]}}}`},
			{image: "broken", ask: "cat /etc/firefox/policies/policies.json", want: "{",
				warns: "Firefox in the sandbox will not trust the session"},
			{image: "java", warns: "a Java trust store of the image is not read",
				ask: "wc -c </etc/aileron/proxy/trust.p12 >/dev/null && echo store", want: "store"},
		} {
			t.Run(strings.Join(append([]string{c.image}, c.flags...), " "), func(t *testing.T) {
				t.Parallel()
				p := newPerson(t, engine)
				if c.open {
					must.Do(t, os.Chmod(p.project, 0o777))
				}
				command := script(c.ask)
				if c.image == "scratch" {
					command = get("/get")
				}
				r := p.box(ref(c.image), c.flags, command)
				p.works(r)
				if strings.Contains(r.err, "touch:") {
					t.Errorf("it could not write where it should: %s", r.err)
				}
				if !strings.HasSuffix(strings.Join(strings.Fields(r.out), " "), c.want) {
					t.Errorf("it does not end with %q:\n%s%s", c.want, r.out, r.err)
				}
				if c.warns == "" && r.err != "" || strings.Count(r.err, c.warns) != 1 && c.warns != "" {
					t.Errorf("it says %q, want %q once", r.err, c.warns)
				}
			})
		}
	})
}

func TestAnImageThatCannotBeTrustedWithIsRefusedBeforeItStarts(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			image string
			says  []string
		}{
			{"directory", []string{"/etc/ssl/certs/ca-certificates.crt", "not a file", "ca-certificates package"}},
			{"circle", []string{"/etc/ssl/certs", "circle", "rebuild the image"}},
			{"notpem", []string{"/etc/ssl/certs/ca-certificates.crt", "not PEM", "rebuild the image"}},
			{"cut", []string{"cut off", "rebuild the image"}},
			{"huge", []string{"larger than 8 MiB", "rebuild the image"}},
			{"escape", []string{"/home/agent/workspace/x", "something else", "rebuild the image"}},
			{"parents", []string{"/home/agent/workspace/ca-certificates/aileron-session.crt", "something else",
				"rebuild the image"}},
			{"shm", []string{"/dev/shm/x", "something else", "rebuild the image"}},
			{"foreign", []string{recipes.Foreign(), runtime.GOARCH, "pull or build it"}},
			{"ghost", []string{"ghost", "/etc/passwd", "USER"}},
		} {
			t.Run(c.image, func(t *testing.T) {
				t.Parallel()
				p := newPerson(t, engine)
				must.Do(t, os.Chmod(p.project, 0o777))
				command := get("get")
				if c.image == "foreign" {
					command = get("/get")
				}
				p.refused(p.box(ref(c.image), nil, command), append(c.says, ref(c.image))...)
				// The same, looked for without a session.
				r := p.run(nil, "sandbox", "check", "--sandbox="+engine, "--image", ref(c.image), "--dir", p.project, "--agent",
					command[0])
				if r.code != 1 || !strings.Contains(r.out+r.err, c.says[0]) {
					t.Errorf("sandbox check: exit %d, want 1 and %q\n%s%s", r.code, c.says[0], r.out, r.err)
				}
			})
		}
	})
}
