package metrics

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

func text(t *testing.T, c *Counts) string {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, c.Write(&out, State{Ready: true, Queue: 7}))
	return out.String()
}

// sample returns counts of rows of every kind, among them what a sandbox made up.
func sample() *Counts {
	c := New(`1.0 "quoted" \ and
two lines`, func(fqn string) bool { return strings.HasPrefix(fqn, "github://acme/") })
	for i, d := range []audit.Decision{audit.DecisionProxied, audit.DecisionPassthrough, audit.DecisionRejected,
		audit.DecisionUpgrade, audit.DecisionDisabled, ""} {
		c.Observe(&audit.Row{Decision: d, ConnectorFQN: "github://acme/tracker", DurationUS: int64(i) * 5000, Redactions: i,
			RequestBytes: 10, ResponseBytes: 20})
	}
	c.Observe(&audit.Row{Decision: audit.DecisionRejected, ConnectorFQN: "evil\"}\n# EOF", Operation: "x\n", Host: "h\n",
		Path: "/\n", Reason: "host_not_allowed", Redactions: -1})
	c.Observe(&audit.Row{Event: audit.EventBindingRefreshed})
	return c
}

func TestRowsAreCounted(t *testing.T) {
	got := text(t, sample())
	for _, want := range []string{
		`aileron_build_info{version="1.0 \"quoted\" \\ and\ntwo lines"} 1`,
		`aileron_requests_total{decision="proxied",connector="github://acme/tracker"} 1`,
		`aileron_requests_total{decision="rejected",connector=""} 1`,
		`aileron_refusals_total{reason="host_not_allowed"} 1`, `aileron_refusals_total{reason="other"} 1`,
		`aileron_request_duration_seconds_bucket{decision="passthrough",le="0.005"} 1`,
		`aileron_request_duration_seconds_bucket{decision="rejected",le="0.005"} 1`,
		`aileron_request_duration_seconds_bucket{decision="rejected",le="0.01"} 2`,
		`aileron_request_duration_seconds_bucket{decision="rejected",le="+Inf"} 2`,
		`aileron_request_duration_seconds_bucket{decision="rejected",le="1.0"} 2`,
		`aileron_request_duration_seconds_sum{decision="rejected"} 0.01`,
		`aileron_redactions_total 6`, `aileron_audit_queue_bytes 7`, `aileron_request_bytes_total 40`,
		`aileron_credential_renewals_total{result="ok"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no sample %s in:\n%s", want, got)
		}
	}
	if !strings.HasSuffix(got, "\n# EOF\n") || strings.Count(got, "# EOF") != 1 || strings.Contains(got, "evil") {
		t.Errorf("the text has what a sandbox made up:\n%s", got)
	}
}

// What a sandbox sends does not grow what is kept.
func TestLabelsAreBounded(t *testing.T) {
	c := New("1", func(string) bool { return true })
	for i := range 4 * maxConnectors {
		c.Observe(&audit.Row{Decision: audit.DecisionRejected, Reason: fmt.Sprint("reason_", i),
			ConnectorFQN: fmt.Sprint("github://acme/", i)})
	}
	if len(c.requests) > maxConnectors+1 || len(c.refusals) > maxReasons+1 {
		t.Errorf("%d and %d values are kept", len(c.requests), len(c.refusals))
	}
	if got := text(t, c); !strings.Contains(got, fmt.Sprintf("{reason=%q} %d\n", other, 4*maxConnectors-maxReasons)) {
		t.Errorf("those beyond are not counted as others:\n%s", got[len(got)-2000:])
	}
}

// The parser of Prometheus reads every sample. It is a module of its own.
func TestPrometheusReadsTheText(t *testing.T) {
	if testing.Short() {
		t.Skip("the parser of Prometheus is built, which takes a while")
	}
	program := filepath.Join(t.TempDir(), "promparse")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "e2e", "promparse")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the parser: %v\n%s", err, out)
	}
	for name, c := range map[string]*Counts{"rows": sample(), "none": New("1", func(string) bool { return false })} {
		given := text(t, c)
		parse := exec.CommandContext(t.Context(), program, ContentType)
		parse.Stdin = strings.NewReader(given)
		out, err := parse.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", name, err, out, given)
		}
		samples := 0
		for line := range strings.Lines(given) {
			if !strings.HasPrefix(line, "#") {
				samples++
			}
		}
		if got := strings.Count(string(out), "\n"); got != samples {
			t.Errorf("%s: the parser read %d samples of %d:\n%s", name, got, samples, out)
		}
	}
}

// BenchmarkObserve is what a row of a request costs on its path.
func BenchmarkObserve(b *testing.B) {
	c := New("1", func(string) bool { return true })
	row := audit.Row{Decision: audit.DecisionProxied, ConnectorFQN: "github://acme/tracker", DurationUS: 12345}
	for b.Loop() {
		c.Observe(&row)
	}
}
