package trust

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// page is the stub's, which a client prints if it trusts the session.
const page = "octo-stand-in"

// clients returns the commands that get a page through a session with what the system trusts, and the text with which
// each refuses one.
func (s *session) clients(url string) map[string][]string {
	proxy := s.forward()
	at, port, _ := strings.Cut(proxy, ":")
	java := filepath.Join(s.h.user, "Get.java")
	source := `public class Get { public static void main(String[] a) throws Exception {
		System.out.write(new java.net.URL(a[0]).openStream().readAllBytes()); System.out.flush(); } }`
	if err := os.WriteFile(java, []byte(source), 0o600); err != nil {
		s.h.t.Fatal(err)
	}
	all := map[string][]string{
		"curl":   {"curl", "-sS", "-x", "http://" + proxy, url},
		"python": {"python3", "-c", "import urllib.request as u,sys; print(u.urlopen(sys.argv[1]).read().decode())", url},
		"java": {"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dhttps.proxyHost=" + at,
			"-Dhttps.proxyPort=" + port, java, url},
		"chromium": {"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--no-first-run",
			"--disable-background-networking", "--disable-breakpad", "--timeout=300000", "--proxy-server=http://" + proxy, url},
	}
	all["python"] = append([]string{"env", "https_proxy=http://" + proxy}, all["python"]...)
	for name, argv := range all {
		program := argv[0]
		if name == "python" {
			program = "python3"
		}
		if !harness.Has(s.h.t, program) {
			delete(all, name)
			s.h.t.Logf("%s is not installed: it is not tried", program)
		}
	}
	return all
}

// noTrust is how these clients refuse a certificate.
var noTrust = regexp.MustCompile(`SSL certificate problem|CERTIFICATE_VERIFY_FAILED|PKIX path building failed|` +
	`ERR_CERT_AUTHORITY_INVALID`)

// reach checks whether each client gets a page.
func (s *session) reach(url string, want bool) {
	s.h.t.Helper()
	for name, argv := range s.clients(url) {
		out, errs, code := harness.Finish(s.h.t, s.h.command(argv[0], argv[1:]...), patience)
		if got := strings.Contains(out, page); got != want {
			s.h.t.Errorf("%s gets %s: %v, want %v; exit %d: %.2000s%.2000s", name, url, got, want, code, out, errs)
		}
		if !want && !noTrust.MatchString(out+errs) {
			s.h.t.Errorf("%s does not get %s for another reason: %.2000s%.2000s", name, url, out, errs)
		}
	}
}

const (
	declared = "https://api.github.com/user"
	another  = "https://evil.example/user"
)

// Programs that know nothing of the session trust it for its hosts, while it runs. Nothing of it is left.
func TestProgramsOfTheHostTrustTheSessionUntilItEnds(t *testing.T) {
	h := newHost(t)
	profile := h.database(".mozilla/firefox/abcd.default")
	s := h.serve()
	s.reach(declared, false)
	report := stores(t, h.must("ca", "trust", "--yes", "--json").out)
	for _, want := range []string{"system /usr/local/share/ca-certificates", "nss " + profile,
		"nss " + filepath.Join(h.user, ".pki/nssdb")} {
		if report[want] != "trusted" {
			t.Errorf("%s is %q, of %q", want, report[want], report)
		}
	}
	for _, path := range cacerts() {
		if report["java "+path] != "trusted" {
			t.Errorf("%s is %q, of %q", path, report["java "+path], report)
		}
	}
	s.reach(declared, true)
	s.reach(another, false)
	trusted := "trust the root of the session " + s.SessionID + ", until it ends"
	if doctor := h.run("doctor").out; !strings.Contains(doctor, trusted) {
		t.Errorf("doctor prints %s", doctor)
	}
	s.end(syscall.SIGTERM)
	h.checkClean("after the end of the session")
	want := []string{"ca.trust.started cli", "ca.trusted cli", "ca.untrust.started launcher", "ca.untrusted launcher"}
	if got := h.events(); !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
}

// A session that is killed removes nothing. Doctor reports what it left; any other command removes it.
func TestTheNextCommandRemovesTheRootOfAKilledSession(t *testing.T) {
	h := newHost(t)
	s := h.serve()
	h.must("ca", "trust", "--yes", s.SessionID)
	s.end(syscall.SIGKILL)
	doctor := h.run("doctor")
	for _, want := range []string{"FAIL  trust",
		s.SessionID + ", which has ended, is in trust stores of this host: system /usr/local",
		"fix: aileron ca untrust " + s.SessionID} {
		if !strings.Contains(doctor.out, want) {
			t.Errorf("doctor does not print %q: %s", want, doctor.out)
		}
	}
	if doctor.code != 1 {
		t.Errorf("doctor ends with %d", doctor.code)
	}
	if listed := h.must("session", "list"); !strings.Contains(listed.err, "removed the root of the session "+s.SessionID) {
		t.Errorf("the next command prints %s", listed.err)
	}
	h.checkClean("after the next command")
	want := []string{"ca.trust.started cli", "ca.trusted cli", "ca.untrust.started cli", "ca.untrusted cli"}
	if got := h.events(); !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
}

func TestUntrustRemovesTheRootOfARunningSession(t *testing.T) {
	h := newHost(t)
	s := h.serve()
	h.must("ca", "trust", "--yes", "--store", "nss,java")
	if now := systemStores(); strings.Contains(now, "aileron-host-root") {
		t.Errorf("the system's store was changed: %s", difference(h.before, now))
	}
	h.must("ca", "trust", "--yes", "--store", "system") // beside the others
	out := h.must("ca", "untrust", s.SessionID[:12]).out
	for _, want := range []string{"removed  system ", "removed  nss ", "removed  java "} {
		if !strings.Contains(out, want) {
			t.Errorf("untrust prints no %q: %s", want, out)
		}
	}
	h.checkClean("after untrust")
	again := h.must("ca", "untrust")
	if !strings.Contains(again.err, "no root of a session is in a trust store") {
		t.Errorf("a second untrust prints %s", again.err)
	}
	h.must("ca", "trust", "--yes", s.SessionID)
	s.end(syscall.SIGINT)
	h.checkClean("after the end of the session")
}

// slow puts a certutil into PATH that waits when it is to add a root, after it has created the file at the path that it
// returns.
func (h *host) slow() string {
	h.t.Helper()
	real, err := exec.LookPath("certutil")
	if err != nil {
		h.t.Fatal(err)
	}
	bin, reached := h.t.TempDir(), filepath.Join(h.t.TempDir(), "reached")
	script := "#!/bin/sh\ncase \" $* \" in *' -A '*) " + real + " \"$@\"; : >" + reached +
		"; exec tail -f /dev/null ;; esac\n" +
		"exec " + real + " \"$@\"\n"
	must.Do(h.t, os.WriteFile(filepath.Join(bin, "certutil"), []byte(script), 0o755))
	h.path = bin + ":" + h.path
	return reached
}

// A command that is interrupted removes what it has added; one that is killed leaves that to the session's end.
func TestAnInterruptedCommandLeavesNothing(t *testing.T) {
	for sig, events := range map[syscall.Signal][]string{
		syscall.SIGINT:  {"ca.trust.started cli", "ca.trust.failed cli"},
		syscall.SIGKILL: {"ca.trust.started cli", "ca.untrust.started launcher", "ca.untrusted launcher"},
	} {
		t.Run(sig.String(), func(t *testing.T) {
			h := newHost(t)
			s := h.serve()
			reached := h.slow()
			cmd := h.command(program(), "ca", "trust", "--yes", "--store", "system,nss")
			var errs strings.Builder
			cmd.Stderr = &errs
			must.Do(t, cmd.Start())
			harness.WaitFor(t, "the command at its second store", func() bool {
				_, err := os.Stat(reached)
				return err == nil
			})
			must.Do(t, cmd.Process.Signal(sig))
			_ = cmd.Wait()
			if sig == syscall.SIGINT {
				h.checkClean("after Ctrl-C")
				if !strings.Contains(errs.String(), "interrupted: the session's root was removed again") {
					t.Errorf("it prints %s", errs.String())
				}
			}
			s.end(syscall.SIGTERM)
			h.checkClean("after the end of the session")
			if got := h.events(); !slices.Equal(got, events) {
				t.Errorf("the events are %q, want %q", got, events)
			}
		})
	}
}
