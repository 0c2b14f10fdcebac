package proxy

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// documented is what a row of docs/errors.md states about a reason.
type documented struct {
	class  class
	status []string // one or more; none for a reason that no response has
}

// documentedReasons returns the rows of docs/errors.md about the proxy's
// reasons, without those that only commands print.
func documentedReasons(t *testing.T) map[Reason]documented {
	t.Helper()
	manual := must.Get(os.ReadFile("../docs/errors.md"))(t)
	all, _, _ := strings.Cut(string(manual), retriesSection)
	rows := map[Reason]documented{}
	quoted := regexp.MustCompile("`(\\w+)`")
	last := class("")
	for line := range strings.SplitSeq(all, "\n") {
		cells := strings.Split(line, " |")
		if !strings.HasPrefix(line, "| ") || len(cells) < 5 || strings.Contains(cells[1], "--json") {
			continue
		}
		if m := quoted.FindStringSubmatch(cells[0]); m != nil {
			last = class(m[1])
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			rows[Reason(m[1])] = documented{last, regexp.MustCompile(`\d+`).FindAllString(cells[1], -1)}
		}
	}
	return rows
}

func TestTheManualExplainsEveryReasonAndNoOther(t *testing.T) {
	manual := documentedReasons(t)
	for reason, m := range meanings {
		row, ok := manual[reason]
		switch {
		case !ok:
			t.Errorf("docs/errors.md does not explain %s", reason)
		case row.class != m.class:
			t.Errorf("docs/errors.md has %s under %s, the table under %s", reason, row.class, m.class)
		case reason != ReasonUndelivered && !slices.Contains(row.status, strconv.Itoa(m.status)):
			t.Errorf("docs/errors.md has %s with status %s, the table with %d", reason, row.status, m.status)
		case m.hint == "":
			t.Errorf("%s has no hint", reason)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(manual)) {
		if _, ok := meanings[reason]; !ok {
			t.Errorf("docs/errors.md explains %s, which no request is denied for", reason)
		}
	}
}

const retriesSection = "\n## Which clients try again\n"

// e2e/retries tries the rest of the table.
func TestTheManualSaysOfEachReasonWhoTriesAgain(t *testing.T) {
	manual := must.Get(os.ReadFile("../docs/errors.md"))(t)
	_, section, _ := strings.Cut(string(manual), retriesSection)
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (yes|no) \| ([^|]*) \|`)
	stated := map[Reason]string{}
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		for name := range strings.SplitSeq(m[3], ", ") {
			stated[Reason(strings.Trim(name, "`"))] += m[1] + " " + m[2]
		}
	}
	for reason, m := range meanings {
		if want := strconv.Itoa(m.status) + map[bool]string{true: " yes", false: " no"}[m.retriable]; stated[reason] != want {
			t.Errorf("the manual has %s in the row %q, want %q", reason, stated[reason], want)
		}
		delete(stated, reason)
	}
	if len(stated) > 0 {
		t.Errorf("the manual has %v, which are no reasons", stated)
	}
}

// A client tries a 5xx again: what lasts must have another status. The exceptions are not of the request's making, or
// leave open whether it took effect.
func TestWhatLastsIsNoServerError(t *testing.T) {
	open := []Reason{
		ReasonDraining, ReasonCA, ReasonPanic, // the session's end, or a fault of ours
		ReasonClientGone, ReasonUndelivered, // in rows alone
		ReasonUpstream, ReasonUpstreamHTTP, ReasonUpstreamHead, ReasonUpstreamSlow, ReasonUpstreamEnd, ReasonUpstreamRST,
		ReasonTruncated, ReasonTimeout, // the host's
	}
	for reason, m := range meanings {
		if m.status >= 500 && !m.retriable && !slices.Contains(open, reason) {
			t.Errorf("%s lasts, and has the status %d", reason, m.status)
		}
		if m.status < 500 && m.status != 429 && m.status != 408 && m.retriable && reason != ReasonApproval { // as a 5xx it
			// would be sent again for as long as a person does not decide
			t.Errorf("%s passes, and has the status %d", reason, m.status)
		}
	}
}

// Every constant of the type is in the table: one that is not would read as an
// internal error.
func TestEveryReasonHasAMeaning(t *testing.T) {
	source := must.Get(os.ReadFile("reason.go"))(t)
	declared := regexp.MustCompile(`(?m)^\t[rR]eason\w+\s+Reason = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	for _, m := range declared {
		if _, ok := meanings[Reason(m[1])]; !ok {
			t.Errorf("%s has no meaning", m[1])
		}
	}
	if len(declared) != len(meanings) {
		t.Errorf("%d reasons are declared, and %d have a meaning", len(declared), len(meanings))
	}
	if m := Reason("unheard_of").meaning(); m.class != runtimeError || m.status != 502 {
		t.Errorf("a reason that is not in the table means %+v", m)
	}
}
