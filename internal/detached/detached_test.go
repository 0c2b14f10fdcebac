package detached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/terminal"
)

// patience is as long as only a defect takes, on a busy machine too.
var patience = must.Patience(5 * time.Minute)

// TestMain is also the client of TestAProcessOfAContainerIsNotAttached, and the process of
// TestAProcessThatWritesItsLastWordsIsWaitedFor.
func TestMain(m *testing.M) {
	if path := os.Getenv("DETACHED_TEST_MESSAGES"); path != "" {
		redirectMessages(path)
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Println("the report")
		os.Exit(0)
	}
	if dir := os.Getenv("DETACHED_TEST_DIR"); dir != "" {
		_, err := Attach(context.Background(), Attachment{
			Dir: dir, In: strings.NewReader("typed"), Out: os.Stdout, Keys: DefaultKeys,
			Attached: func(h Hello, _ bool) { fmt.Println("attached to " + h.Session); os.Exit(0) },
		})
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process of a container may have the user's uid, and the socket by mistake.
func TestAProcessOfAContainerIsNotAttached(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	client := func(flags uintptr) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "DETACHED_TEST_DIR="+term.session.Dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if flags&unix.CLONE_NEWUSER != 0 {
			id := []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.UidMappings = id
		}
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	if got, err := client(0); err != nil || got != "attached to 01SESSION" {
		t.Fatalf("a process beside the session: %q, %v", got, err)
	}
	flags := uintptr(unix.CLONE_NEWPID)
	if os.Geteuid() != 0 {
		flags |= unix.CLONE_NEWUSER
	}
	got, err := client(flags)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skipf("this host makes no PID namespaces: %v", err)
	}
	if err != nil || got != ErrRefused.Error() {
		t.Errorf("a process of a container: %q, %v", got, err)
	}
}

// Only the user can read the output, and reach the socket.
func TestOutputAndSocketAreTheUsers(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	_, _ = term.Write([]byte("text"))
	for path, want := range map[string]fs.FileMode{
		Dir(term.session.Home, "01SESSION"): 0o700, term.record.file.Name(): 0o600, socketPath(term.session.Dir): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info, err, want)
		}
	}
}

func none(string) bool { return false }

// open returns a terminal of a session in a new home.
func open(t *testing.T, s Session) *Terminal {
	t.Helper()
	term := New(terminal.Size{Height: 24, Width: 80})
	s.Home, s.ID, s.Agent = t.TempDir(), "01SESSION", "agent"
	if s.Alive == nil {
		s.Alive = none
	}
	s.Dir = filepath.Join(s.Home, "s")
	must.Do(t, os.Mkdir(s.Dir, 0o700))
	must.Do(t, term.Open(s))
	t.Cleanup(func() { term.End(End{}) })
	return term
}

// person is someone who is attached without a terminal.
type person struct {
	types *io.PipeWriter
	ended chan struct{}
	end   End
	err   error

	must.Output
}

func (p *person) text() string { return p.String() }

// attach attaches a person, and returns when that is done.
func attach(ctx context.Context, t *testing.T, term *Terminal, keys string) (p *person, h Hello) {
	t.Helper()
	in, types := io.Pipe()
	p = &person{types: types, ended: make(chan struct{})}
	done := make(chan Hello, 1)
	go func() {
		defer close(p.ended)
		p.end, p.err = Attach(ctx, Attachment{
			Dir: term.session.Dir, In: in, Out: p, Keys: keys,
			Attached: func(h Hello, _ bool) { done <- h },
		})
	}()
	select {
	case h = <-done:
	case <-p.ended:
		t.Fatalf("attach: %v", p.err)
	}
	t.Cleanup(func() { _ = types.Close() })
	return p, h
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("it did not happen that %s", what)
		}
	}
}

func TestAPersonIsAttachedAndDetached(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	_, _ = term.Write([]byte("before\x1b[?1049h\x1b[?2004h"))
	p, h := attach(t.Context(), t, term, DefaultKeys)
	if h != (Hello{Session: "01SESSION", Agent: "agent"}) || !IsAttached(term.session.Dir) {
		t.Errorf("hello %+v, attached: %v", h, IsAttached(term.session.Dir))
	}
	_, _ = term.Write([]byte("after"))
	until(t, "the output is seen", func() bool { return p.text() == "\x1b[?1049h\x1b[?2004hafter" })
	_, _ = io.WriteString(p.types, "hello\x10!")
	got := make([]byte, 7)
	if _, err := io.ReadFull(term, got); err != nil || string(got) != "hello\x10!" {
		t.Errorf("the command reads %q, %v", got, err)
	}
	_, _ = io.WriteString(p.types, "\x10\x11")
	if <-p.ended; !errors.Is(p.err, ErrDetached) {
		t.Errorf("Attach: %v", p.err)
	}
	until(t, "nothing is attached", func() bool { return !IsAttached(term.session.Dir) })
	if _, err := term.Write([]byte("goes on")); err != nil {
		t.Error(err)
	}
}

// A command that reads late gets all that was typed before, also by a person who has detached, and while it writes.
func TestACommandThatReadsLateGetsAllThatWasTyped(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	p, _ := attach(t.Context(), t, term, DefaultKeys)
	var typed strings.Builder
	for i := range typedAhead + 32 { // the last wait in the connection
		key := fmt.Sprintf("%d,", i)
		typed.WriteString(key)
		_, _ = io.WriteString(p.types, key)
	}
	_, _ = io.WriteString(p.types, "\x10\x11")
	if <-p.ended; !errors.Is(p.err, ErrDetached) {
		t.Fatalf("Attach: %v", p.err)
	}
	for range 3 {
		_, _ = term.Write([]byte("no client takes it"))
	}
	lost := time.AfterFunc(patience, func() { term.End(End{}) }) // Read ends with it
	defer lost.Stop()
	got := make([]byte, typed.Len())
	if n, err := io.ReadFull(term, got); err != nil || string(got) != typed.String() {
		t.Errorf("the command reads %q, %v; typed was %q", got[:n], err, typed.String())
	}
}

func TestALaterPersonTakesThePlaceOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	one, _ := attach(t.Context(), t, term, DefaultKeys)
	two, h := attach(t.Context(), t, term, DefaultKeys)
	taken := (*TakenError)(nil)
	if <-one.ended; !errors.As(one.err, &taken) || taken.PID != os.Getpid() || h.Taken != os.Getpid() {
		t.Errorf("the earlier ends with %v, the later is told of %d", one.err, h.Taken)
	}
	const most = maxFrame / 8 // of the messages, the end
	term.End(End{Code: 7, Messages: strings.Repeat("<", most) + "the report"})
	want := strings.Repeat("<", most-len("the report")) + "the report"
	if <-two.ended; two.err != nil || two.end != (End{7, want}) {
		t.Errorf("the later ends with %+v, %v", two.end, two.err)
	}
	if _, err := term.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the end, Read returns %v", err)
	}
	if _, err := Attach(t.Context(), Attachment{Dir: term.session.Dir, Keys: DefaultKeys}); !errors.Is(err, ErrRefused) {
		t.Errorf("after the end, Attach returns %v", err)
	}
}

// The command goes on although a terminal takes no output, and a later one is not kept waiting.
func TestATerminalThatTakesNoOutputHoldsNothingUp(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	stuck, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	in, _ := io.Pipe()
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := Attach(t.Context(), Attachment{Dir: term.session.Dir, In: in, Keys: DefaultKeys,
			Attached: func(Hello, bool) { close(done) },
			Out:      writerFunc(func([]byte) { once.Do(func() { close(stuck) }); <-release })})
		ended <- err
	}()
	<-done
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range 64 { // more than the kernel holds
			_, _ = term.Write(make([]byte, 64<<10))
		}
	}()
	<-stuck
	later, _ := attach(t.Context(), t, term, DefaultKeys)
	<-written
	_, _ = term.Write([]byte("now"))
	until(t, "the later one sees it", func() bool { return strings.HasSuffix(later.text(), "now") })
	close(release)
	if err := <-ended; err == nil || errors.Is(err, ErrDetached) {
		t.Errorf("the earlier ends with %v", err)
	}
}

// A program that asks for the cursor's place ends if nothing responds. A terminal that is attached responds itself.
func TestACommandThatAsksItsTerminalGetsAReply(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	for range 100 {
		_, _ = term.Write([]byte("\x1b[6n")) // it does not read
	}
	got := make([]byte, 6)
	if _, err := io.ReadFull(term, got); err != nil || string(got) != "\x1b[1;1R" {
		t.Errorf("the command reads %q, %v", got, err)
	}
}

// The size changes twice, or a program that compares sizes would draw nothing.
func TestAScreenIsDrawnAnewInTheSizeOfATerminal(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	must.Do(t, pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 80}))
	before := must.Get(unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS))(t)
	ctx, cancel := context.WithCancel(t.Context())
	attached := make(chan error, 1)
	go func() {
		_, err := Attach(ctx, Attachment{Dir: term.session.Dir, In: tty, Out: tty, Keys: "ctrl-a,d",
			Attached: func(Hello, bool) {}})
		attached <- err
	}()
	resized := func() terminal.Size {
		t.Helper()
		select {
		case size := <-term.Resized():
			return size
		case <-time.After(patience):
			t.Fatal("the size never changes")
			return terminal.Size{}
		}
	}
	expect := func(height uint) {
		t.Helper()
		if got, want := resized(), (terminal.Size{Height: height, Width: 80}); got != want {
			t.Errorf("the size becomes %v, want %v", got, want)
		}
	}
	still := func(most time.Duration, until string) {
		t.Helper()
		select {
		case got := <-term.Resized():
			t.Errorf("the size becomes %v before %s", got, until)
		case <-time.After(most):
		}
	}
	expect(23)
	expect(23) // which is taken when the first is in force
	// A program on a busy machine looks late, and must still find another size than before.
	still(2*redrawPauses[0], "the command has drawn")
	_, _ = term.Write([]byte("\x1b[3;1H▟█▟"))
	expect(24)
	// It may have drawn only what moves, and not have looked at all.
	expect(23)
	expect(23)
	_, _ = term.Write([]byte("\x1b[2J\x1b[HWelcome back!" + strings.Repeat("\r\nTips for getting started", 5)))
	expect(24)
	still(2*redrawPauses[1], "anything has changed")
	if now, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || *now == *before {
		t.Errorf("the terminal is not in raw mode, %v: this proves nothing", err)
	}
	cancel()
	if err := <-attached; !errors.Is(err, context.Canceled) {
		t.Errorf("Attach: %v", err)
	}
	if now, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || *now != *before {
		t.Errorf("the terminal is %+v, was %+v, %v", now, before, err)
	}
}

func TestTheKeysThatDetach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, keys, typed string
		pass              string
		detach            bool
	}{
		{"the keys", "ctrl-p,ctrl-q", "ab\x10\x11cd", "ab", true},
		{"another second key", "ctrl-p,ctrl-q", "\x10x\x11", "\x10x\x11", false},
		{"the first key twice", "ctrl-p,ctrl-q", "\x10\x10\x11", "\x10", true},
		{"plain keys after a prefix", "ctrl-a,d", "\x01xd\x01d", "\x01xd", true},
		{"one key", "ctrl-]", "x\x1d", "x", true},
		{"other input", "ctrl-p,ctrl-q", "\x1b[A\x1b[1;5C\x1bOP\x1b[200~\x10é\x1b[201~",
			"\x1b[A\x1b[1;5C\x1bOP\x1b[200~\x10é\x1b[201~", false},
		{"the kitty protocol", "ctrl-p,ctrl-q", "\x1b[112;5u\x1b[113;5u", "", true},
		{"with releases, and ctrl itself", "ctrl-p,ctrl-q",
			"\x1b[57442;5u\x1b[112;5:1u\x1b[112;5:3u\x1b[57442;1:3u\x1b[57442;5u\x1b[113;5:1u", "\x1b[57442;5u", true},
		{"with the number lock", "ctrl-p,ctrl-q", "\x1b[112;133u\x1b[113;133u", "", true},
		{"with shift too", "ctrl-p,ctrl-q", "\x1b[112;6u\x1b[113;6u", "\x1b[112;6u\x1b[113;6u", false},
		{"modifyOtherKeys", "ctrl-p,ctrl-q", "\x1b[27;5;112~\x1b[27;5;113~", "", true},
		{"mixed with a release that is not theirs", "ctrl-a,d", "\x1b[97;5u\x1b[97;5:3ud", "", true},
	} {
		keys := must.Get(parseKeys(c.keys))(t)
		w := watcher{keys: keys}
		pass, detach := w.feed([]byte(c.typed))
		if !detach {
			pass = append(pass, w.release()...)
		}
		if string(pass) != c.pass || detach != c.detach {
			t.Errorf("%s: passes %q, detaches: %v; want %q, %v", c.what, pass, detach, c.pass, c.detach)
		}
	}
	for _, bad := range []string{"", "ctrl-", "ctrl-1", "ctrl-p,", "ab", "a,b,c,d,e,f,g,h,i", "ctrl-ü"} {
		if CheckKeys(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("ab\x10\x1b[113;5u", 3)
	f.Fuzz(func(t *testing.T, typed string, _ int) {
		w := watcher{keys: []byte{0x10, 0x11}}
		pass, detach := w.feed([]byte(typed))
		if pass = append(pass, w.release()...); !detach && string(pass) != typed {
			t.Errorf("%q becomes %q", typed, pass)
		}
	})
}

// read returns what is recorded of a session, and how much of its beginning is missing.
func read(t *testing.T, o Output) (text string, cut int64) {
	t.Helper()
	var b bytes.Buffer
	o.Cut = func(n int64) { cut += n }
	must.Do(t, o.Copy(t.Context(), &b))
	return b.String(), cut
}

func TestTheEndOfTheOutputIsKept(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	home := term.session.Home
	var whole strings.Builder
	line := 0
	for whole.Len() < 2*MaxOutput {
		text := fmt.Sprintf("line %d %s\n", line, strings.Repeat("x", 900))
		whole.WriteString(text)
		_, _ = term.Write([]byte(text))
		line++
	}
	term.End(End{})
	got, cut := read(t, Output{Home: home, ID: "01SESSION", Tail: -1})
	if len(got) < MaxOutput/2 || len(got) > MaxOutput || got != whole.String()[cut:] {
		t.Errorf("%d bytes are kept and %d are not, of %d", len(got), cut, whole.Len())
	}
	last, _ := read(t, Output{Home: home, ID: "01SESSION", Tail: 2})
	if want := got[strings.LastIndex(got[:strings.LastIndex(got[:len(got)-1], "\n")], "\n")+1:]; last != want {
		t.Errorf("the last lines are %.100q…, want %.100q…", last, want)
	}
	if none, _ := read(t, Output{Home: home, ID: "01SESSION", Tail: 0}); none != "" {
		t.Errorf("no lines are %.100q…", none)
	}
	if _, err := os.Stat(filepath.Join(Dir(home, "01SESSION"), segmentName(0))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the first file: %v", err)
	}
}

func TestOutputIsFollowedToTheEndOfASession(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	_, _ = term.Write([]byte("one\ntwo\n"))
	reader, writer := io.Pipe()
	over := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		o := Output{Home: term.session.Home, ID: "01SESSION", Tail: 1, Alive: func() bool {
			select {
			case <-over:
				return false
			default:
				return true
			}
		}}
		err := o.Copy(t.Context(), writer)
		_ = writer.Close()
		done <- err
	}()
	buf := make([]byte, 64)
	if n, err := reader.Read(buf); err != nil || string(buf[:n]) != "two\n" {
		t.Fatalf("the tail is %q, %v", buf[:n], err)
	}
	_, _ = term.Write([]byte("three\n"))
	if n, err := reader.Read(buf); err != nil || string(buf[:n]) != "three\n" {
		t.Fatalf("what follows is %q, %v", buf[:n], err)
	}
	_, _ = term.Write([]byte("four\n"))
	close(over)
	if rest, err := io.ReadAll(reader); err != nil || string(rest) != "four\n" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What could not be recorded is named where it would be; the command is not told.
func TestTheCommandGoesOnWithoutARecord(t *testing.T) {
	t.Parallel()
	term := open(t, Session{})
	_, _ = term.Write([]byte("one\n"))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	file := term.record.file
	term.record.file = full
	if n, err := term.Write([]byte("lost\n")); n != 5 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	term.record.file = file
	_ = full.Close()
	_, _ = term.Write([]byte("two\n"))
	got, _ := read(t, Output{Home: term.session.Home, ID: "01SESSION", Tail: -1})
	want := "one\n\r\n[aileron: 5 bytes were not recorded: write /dev/full: no space left on device]\r\ntwo\n"
	if got != want {
		t.Errorf("recorded is %q, want %q", got, want)
	}
}

func TestWhatIsRecordedIsRedacted(t *testing.T) {
	t.Parallel()
	term := open(t, Session{Redact: func(src io.ReadCloser) io.ReadCloser { return &upper{src} }})
	p, _ := attach(t.Context(), t, term, DefaultKeys)
	_, _ = term.Write([]byte("word\n"))
	until(t, "the person sees it as it is", func() bool { return p.text() == "word\n" })
	term.End(End{})
	if got, _ := read(t, Output{Home: term.session.Home, ID: "01SESSION", Tail: -1}); got != "WORD\n" {
		t.Errorf("recorded is %q", got)
	}
}

// upper stands for what redacts.
type upper struct{ io.ReadCloser }

func (u *upper) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	copy(p, bytes.ToUpper(p[:n]))
	return n, err
}

func TestTheOutputOfOlderSessionsIsRemoved(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for i := range 5 {
		must.Do(t, os.MkdirAll(Dir(home, fmt.Sprintf("0%d", i)), 0o700))
	}
	removed, err := Prune(home, 2, func(id string) bool { return id == "00" })
	left, _ := os.ReadDir(outputs(home))
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if removed != 2 || err != nil || strings.Join(names, " ") != "00 03 04" {
		t.Errorf("Prune = %d, %v; left are %v", removed, err, names)
	}
	if _, err := (Output{Home: home, ID: "01"}).segments(); !errors.Is(err, ErrNone) {
		t.Errorf("what was removed: %v", err)
	}
	if n, err := Prune(t.TempDir(), 0, none); n != 0 || err != nil {
		t.Errorf("Prune of nothing = %d, %v", n, err)
	}
}

// A sequence of a terminal is read up to the 32nd byte behind its introduction, and no further.
func TestASequenceOfATerminalIsBounded(t *testing.T) {
	for _, c := range []struct {
		digits int
		n      int // bytes of the key
	}{{31, 34}, {32, 35}, {33, 1}} {
		typed := []byte("\x1b[" + strings.Repeat("1", c.digits) + "~rest")
		if _, is, n := nextKey(typed); is != otherInput || n != c.n {
			t.Errorf("with %d digits, the key has %d bytes; want %d", c.digits, n, c.n)
		}
	}
	if key, is, n := nextKey([]byte("a\x1b[~")); key != 'a' || is != aKey || n != 1 {
		t.Errorf("nextKey = %q, %v, %d", key, is, n)
	}
}
