package launch

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Rows that are not in the log turn a success into a failure, and leave the exit code of a command that failed. Either
// way the error is printed once: by the caller, or by Report.
func TestRowsThatAreNotInTheLogDecideTheExitCode(t *testing.T) {
	lost := errors.New("close the session: rows are lost")
	for _, c := range []struct {
		code             int
		closed           error
		want             int // exit code; 1 for an error that decides it
		returned, report bool
	}{
		{code: 0, closed: nil, want: 0},
		{code: 7, closed: nil, want: 7},
		{code: 0, closed: lost, want: 1, returned: true},
		{code: 7, closed: lost, want: 7, report: true},
	} {
		var reported []error
		l := &Launcher{Report: func(err error) { reported = append(reported, err) }}
		err := l.unrecorded(c.code, c.closed)
		code, exit := 0, (*ExitError)(nil)
		switch {
		case errors.As(err, &exit):
			code = exit.Code
		case err != nil:
			code = 1
		}
		if code != c.want || errors.Is(err, lost) != c.returned || (len(reported) == 1) != c.report {
			t.Errorf("a command that ended with %d, and %v: %v, reported %v", c.code, c.closed, err, reported)
		}
	}
}

// What is printed as api_url is a name under which the API answers.
func TestAListenersAddressIsOneThatItRespondsTo(t *testing.T) {
	for _, c := range []struct {
		asked string
		at    net.TCPAddr
		addr  string
		names []string
	}{
		{"127.0.0.1:0", net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3199}, "127.0.0.1:3199", nil},
		{"0.0.0.0:3199", net.TCPAddr{IP: net.IPv4zero, Port: 3199}, "127.0.0.1:3199", nil},
		{":3199", net.TCPAddr{IP: net.IPv6unspecified, Port: 3199}, "127.0.0.1:3199", nil},
		{"[::1]:0", net.TCPAddr{IP: net.IPv6loopback, Port: 3199}, "[::1]:3199", nil},
		{"Build.Example:0", net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 3199}, "192.0.2.7:3199",
			[]string{"build.example:3199"}},
	} {
		if addr, names := reachable(&c.at), listenNames(c.asked, &c.at); addr != c.addr || !slices.Equal(names, c.names) {
			t.Errorf("--listen %s: %s, %q; want %s, %q", c.asked, addr, names, c.addr, c.names)
		}
		want := slices.Contains([]string{"0.0.0.0:3199", ":3199", "Build.Example:0"}, c.asked)
		if exposed := isExposed(&c.at); exposed != want {
			t.Errorf("--listen %s: exposed is %v", c.asked, exposed)
		}
	}
}

// An organisation's notes in an image are not replaced by those on the sandbox.
func TestAnImagesOwnNotesStay(t *testing.T) {
	const at = "/etc/claude-code/CLAUDE.md"
	for name, c := range map[string]struct {
		image fstest.MapFS
		at    string
		want  []string
	}{
		"no notes":        {fstest.MapFS{}, at, []string{notesFile, at}},
		"its own notes":   {fstest.MapFS{at[1:]: {Data: []byte("theirs")}}, at, []string{notesFile}},
		"a link":          {fstest.MapFS{at[1:]: {Mode: fs.ModeSymlink, Data: []byte("nowhere")}}, at, []string{notesFile}},
		"no place for it": {fstest.MapFS{}, "", []string{notesFile}},
	} {
		files, err := notesIn(c.image, c.at)
		var got []string
		for _, f := range files {
			got = append(got, f.Path)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// A sweep takes as long as a busy engine needs; only the pauses between two
// sweeps are counted.
func TestAReaperGoesOnAsLongAsItsEngineWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 5
		err := untilNothingIsLeft(func() (int, error) {
			<-time.After(reaperTime)
			left = max(left-1, 0)
			return left, nil
		})
		if err != nil || left != 0 {
			t.Errorf("it gave up with %d containers left: %v", left, err)
		}
	})
}

func TestAReaperGivesUpAnEngineThatDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, began := errors.New("docker: no daemon runs"), time.Now()
		if err := untilNothingIsLeft(func() (int, error) { return 0, gone }); !errors.Is(err, gone) {
			t.Errorf("untilNothingIsLeft = %v, want %v", err, gone)
		}
		if took := time.Since(began); took < reaperTime || took > reaperTime+sweepPause {
			t.Errorf("it gave up after %v, want %v", took, reaperTime)
		}
	})
}

// newZones returns a directory with two time zones of this machine's database
// and, in its /etc/localtime, a link to the first.
func newZones(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc", "usr/share/zoneinfo/Europe"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	for _, name := range []string{"Europe/Berlin", "UTC"} {
		data, err := os.ReadFile("/usr/share/zoneinfo/" + name)
		if err != nil {
			t.Skip("this machine has no time zones: ", err)
		}
		must.Do(t, os.WriteFile(filepath.Join(root, "usr/share/zoneinfo", name), data, 0o600))
	}
	must.Do(t, os.WriteFile(filepath.Join(root, "usr/share/zoneinfo/leap"), []byte("# text"), 0o600))
	must.Do(t, os.Symlink("../usr/share/zoneinfo/Europe/Berlin", filepath.Join(root, "etc/localtime")))
	return root
}

func TestTheHostsTimeZoneIsFound(t *testing.T) {
	root := newZones(t)
	for tz, want := range map[string]string{
		"": "Europe/Berlin", "UTC": "UTC", ":UTC": "UTC",
		"CET-1CEST": "Europe/Berlin", "../../../etc/localtime": "Europe/Berlin", "leap": "Europe/Berlin",
		"Europe": "Europe/Berlin", "/etc/passwd": "Europe/Berlin",
	} {
		if got := hostZone(tz, root); got.name != want || len(got.data) == 0 {
			t.Errorf("hostZone(%q) = %q with %d bytes, want %s", tz, got.name, len(got.data), want)
		}
	}
	must.Do(t, os.Remove(filepath.Join(root, "etc/localtime")))
	if got := hostZone("", root); got.data != nil {
		t.Errorf("hostZone without /etc/localtime = %q", got.name)
	}
}

func TestAFileThatIsNoTimeZoneIsNotHandedOver(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "etc/localtime")
	must.Do(t, os.Mkdir(filepath.Dir(file), 0o700))
	for _, data := range []string{"", "secret", "TZif2 and a lie"} {
		must.Do(t, os.WriteFile(file, []byte(data), 0o600))
		if got := hostZone("", root); got.data != nil {
			t.Errorf("hostZone with a file of %q = %q", data, got.data)
		}
	}
}
