package engine

import "testing"

func TestTheLastErrorOfAServiceIsFound(t *testing.T) {
	for said, want := range map[string]string{
		"": "",
		"Error: no room\ntime=\"2026-11-22T12:54:06Z\" level=error msg=\"unable to get systemd connection to add healthchecks\"\n": "Error: no room",
		"Error: database is broken\n": "Error: database is broken",
		"time=\"2026-11-22T12:54:06Z\" level=error msg=\"no space left on \\\"/\\\"\" x=1\ntime=\"2026-11-22T12:54:07Z\" level=warning msg=\"IdleTracker\"\n": `no space left on "/"`,
		"time=\"2026-11-22T12:54:06Z\" level=info msg=\"starting\"\n":                                                                                         "",
		"time=\"2026-11-22T12:54:06Z\" level=fatal msg=\"cut\n":                                                                                               `time="2026-11-22T12:54:06Z" level=fatal msg="cut`,
	} {
		logs := &Tail{}
		if _, err := logs.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		if got := logs.LastError(); got != want {
			t.Errorf("last of %q = %q, want %q", said, got, want)
		}
	}
}
