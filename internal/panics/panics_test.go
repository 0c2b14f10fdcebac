package panics

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

type deep struct{ next *deep }

func (d *deep) fall(n int) {
	if n == 0 {
		d.next.next = d // a nil dereference
		return
	}
	d.fall(n - 1)
}

func TestALogNamesTheOriginAndNeverTheValue(t *testing.T) {
	for name, c := range map[string]struct {
		fall func()
		want string
	}{
		"a value": {
			func() { panic("CANARY of a client") },
			"panics.TestALogNamesTheOriginAndNeverTheValue.func1 panics_test.go:",
		},
		"a nil dereference, deep": {
			func() { new(deep).fall(40) },
			"panics.(*deep).fall panics_test.go:14 < panics.(*deep).fall panics_test.go:17",
		},
		"an index": {
			func() { var none []int; _ = none[len(name1)] },
			"func3 panics_test.go:",
		},
		"one that was raised again": {
			func() { defer func() { panic(recover()) }(); new(deep).fall(0) },
			"panics.(*deep).fall panics_test.go:14",
		},
		"one in a deferred function": {
			func() { defer func() { new(deep).fall(0) }() },
			"panics.(*deep).fall panics_test.go:14",
		},
	} {
		var out bytes.Buffer
		func() {
			defer func() {
				if recover() != nil {
					Log(slog.New(slog.NewTextHandler(&out, nil)), "a test", "request_id", "7")
				}
			}()
			c.fall()
		}()
		line := out.String()
		_, at, _ := strings.Cut(line, `at="`)
		if !strings.Contains(line, `in="a test"`) || !strings.Contains(line, "request_id=7") ||
			!strings.Contains(firstCalls(at), c.want) || strings.Contains(line, "CANARY") ||
			strings.Count(at, " < ") >= maxFrames {
			t.Errorf("%s: the log has %s", name, line)
		}
	}
}

const name1 = "n"

// firstCalls returns the beginning of a list of calls.
func firstCalls(at string) string {
	calls := strings.SplitN(at, " < ", 3)
	return strings.Join(calls[:min(2, len(calls))], " < ")
}

func TestWithoutALogNothingIsLogged(*testing.T) {
	defer func() {
		_ = recover()
		Log(nil, "a test")
	}()
	panic("x")
}
