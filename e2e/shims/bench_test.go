package shims

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkACommandBesideCurl times a command and the same requests by curl, which take turns in a sandbox of BusyBox
// to which curl was added. A line has what a command adds to the call by curl.
//
//	scripts/with-docker go test -run '^$' -bench BesideCurl -benchtime 61x ./e2e/shims
func BenchmarkACommandBesideCurl(b *testing.B) {
	const call = `{"connector_fqn":"` + fqn + `","tool":"github","operation":"user.get","args":{}}`
	commands := []string{
		"curl\t-q\t-sS\t-H\tAuthorization: Bearer $AILERON_TOKEN\t-H\tContent-Type: application/json\t--data-raw\t" + call +
			"\t$AILERON_API_URL/connector-operations/run",
		"curl\t-q\t-sS\thttps://api.github.com/user",
		"github\tuser.get",
	}
	for name, c := range map[string]contents{
		"BusyBox's wget": {programs: []string{"curl"}},
		"curl alone":     curl,
	} {
		b.Run(name, func(b *testing.B) {
			p := newPerson(b, "podman")
			image := busybox(b, "podman", c)
			build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(p.project, "turns"), "./testdata/turns")
			build.Env = append(build.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			line := fmt.Sprintf("./turns %d", b.N)
			for _, command := range commands {
				line += fmt.Sprintf(" '%s'", command)
			}
			r := p.box(image, line)
			var wall, cpu [3]float64
			for i := range wall {
				if _, err := fmt.Sscanln(nthLine(r.out, i), &wall[i], &cpu[i]); err != nil {
					b.Fatalf("exit %d: %v\n%s%s", r.code, err, r.out, r.err)
				}
			}
			b.ReportMetric(0, "ns/op") // which would be that of a whole session
			b.ReportMetric(wall[0], "call-ms")
			b.ReportMetric(wall[1], "proxied-ms")
			b.ReportMetric(wall[2], "command-ms")
			b.ReportMetric(wall[2]-wall[0], "added-ms")
			b.ReportMetric(wall[2]/wall[0], "ratio")
			b.ReportMetric(cpu[2]-cpu[0], "added-cpu-ms")
		})
	}
}

// nthLine returns a line of a text, from 0, or "".
func nthLine(text string, n int) string {
	lines := strings.Split(text, "\n")
	return append(lines, make([]string, n+1)...)[n]
}
