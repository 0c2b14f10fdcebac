package engine

import "testing"

func TestTheLastErrorOfAServiceIsFound(t *testing.T) {
	const at = `time="2026-11-22T12:54:06Z" level=`
	for _, c := range []struct{ output, want string }{
		{"", ""},
		{"Error: no room\n" + at + "error msg=\"unable to get systemd connection to add healthchecks\"\n", "Error: no room"},
		{"Error: database is broken\n", "Error: database is broken"},
		{at + `error msg="no space left on \"/\"" x=1` + "\n" + at + "warning msg=\"IdleTracker\"\n", `no space left on "/"`},
		{at + "info msg=\"starting\"\n", ""},
		{at + "fatal msg=\"cut\n", at + `fatal msg="cut`},
	} {
		logs := &Tail{}
		if _, err := logs.Write([]byte(c.output)); err != nil {
			t.Fatal(err)
		}
		if got := logs.LastError(); got != c.want {
			t.Errorf("last error of %q = %q, want %q", c.output, got, c.want)
		}
	}
}
