package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/sandbox"
)

func TestAReadOnlySandboxWritesOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		for name, prepare := range map[string]func(project string) error{
			"as the project's owner":  func(dir string) error { return os.Chown(dir, 1234, 1234) },
			"as root":                 func(string) error { return nil },
			"as the image's own user": func(dir string) error { return os.Chmod(dir, 0o777) },
		} {
			t.Run(name, func(t *testing.T) {
				b, out, errs := box(t, idleGateway, "sh", "-c", `cat /etc/aileron/deep/note; cat /etc/ssl/certs/ca-certificates.crt
					for at in /etc /usr/local/bin /root / /tmp /var/tmp "$HOME" .; do
						touch "$at/mark" 2>/dev/null && echo "wrote $at"
					done
					printf '#!/bin/sh\necho ran %s\n' home > "$HOME/tool" && chmod +x "$HOME/tool" && "$HOME/tool"; rm -f mark`)
				b.ReadOnly = true
				b.Files = []sandbox.File{
					{Path: "/etc/aileron/deep/note", Mode: 0o644, Data: []byte("a note\n")},
					{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: []byte("the bundle\n")},
				}
				if err := prepare(b.Dir); err != nil {
					t.Skip(err)
				}
				code, err := e.Run(t.Context(), b)
				want := "a note\nthe bundle\nwrote /tmp\nwrote /var/tmp\nwrote /home/agent\nwrote .\nran home\n"
				if err != nil || code != 0 || out.String() != want {
					t.Errorf("Run = %d, %v, %s\n%s\nwant\n%s", code, err, errs, out, want)
				}
			})
		}
	})
}

func TestAnUnsealedSandboxHasNoGateway(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, errs := box(t, "exit 9\n", "sh", "-c",
			"cat /etc/hosts; ls /run/aileron /aileron 2>/dev/null; grep CapEff /proc/self/status")
		b.Unsealed = true
		code, err := e.Run(t.Context(), b)
		if err != nil && strings.Contains(err.Error(), "host-gateway") {
			t.Skip("this daemon has no bridge, so no address for the alias; TestABoxThatCannotBeSealedSaysSo has one")
		}
		if err != nil || code != 0 || !strings.Contains(out.String(), e.HostAlias()) ||
			!strings.Contains(out.String(), "CapEff:\t0000000000000000") {
			t.Errorf("Run = %d, %v, %s with %q; want the alias and no capability", code, err, errs, out)
		}
	})
}
