package images

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestMountsAndVariablesArePassed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		work := filepath.Join(filepath.Dir(p.home), "work")
		must.Do(t, os.MkdirAll(filepath.Join(work, "bin"), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(work, "bin", "tool"), []byte("#!/bin/sh\necho tool\n"), 0o755))
		flags := []string{"--mount", work + ":/srv/made", "--mount", work + "/bin:/opt/bin:ro", "--env", "A=b c", "--env",
			"LANG=C"}
		r := p.box("", flags, []string{"sh", "-c", `/opt/bin/tool; echo "$A $LANG"; echo made >/srv/made/made
			touch /opt/bin/x 2>/dev/null || echo read-only`})
		if want := "tool\nb c C\nread-only\n"; r.code != 0 || r.out != want {
			t.Errorf("exit %d, %q, want %q\n%s", r.code, r.out, want, r.err)
		}
		if data, err := os.ReadFile(filepath.Join(work, "made")); string(data) != "made\n" {
			t.Errorf("the host sees %q, %v", data, err)
		}
		if r := p.box("", flags, []string{"/opt/bin/tool"}); r.code != 0 || r.out != "tool\n" {
			t.Errorf("a command of a mount: exit %d, %q\n%s", r.code, r.out, r.err)
		}
	})
}

func TestMountsAndVariablesThatGiveTooMuchAreRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		encoded := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
		cases := map[string]string{
			"--mount=" + p.home + ":/x":            "it has the vault",
			"--mount=/:/x":                         "is refused",
			"--mount=" + p.project + ":/proc/x":    "/proc is not yours",
			"--env=TOKEN=" + secret:                "holds the secret of the binding",
			"--env=URL=https://x:" + secret + "@h": "holds the secret of the binding",
			"--env=BASIC=" + encoded:               "holds the secret of the binding",
			"--env=HTTPS_PROXY=x":                  "the session sets it",
		}
		if socket, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok && engine == "docker" {
			cases["--mount="+filepath.Dir(socket)+":/x"] = "it holds " + socket + ", which a sandbox must not have"
		}
		for flag, want := range cases {
			r := p.box("", []string{flag}, []string{"echo", "ran"})
			if r.code == 0 || r.out != "" || !strings.Contains(r.err, want) || strings.Contains(r.err, secret[:16]) ||
				strings.Contains(r.err, encoded[:16]) {
				t.Errorf("%.20s: exit %d, %q, want %q\n%s", flag, r.code, r.out, want, r.err)
			}
		}
		if n := len(p.origin.Seen()); n != 0 {
			t.Errorf("the service saw %d requests", n)
		}
	})
}
