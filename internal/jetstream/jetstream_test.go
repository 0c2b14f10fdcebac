package jetstream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/jetstream"
	"github.com/ALRubinger/aileron/internal/ship"
)

// program is the server, which is compiled once.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "nats")
	if err == nil {
		program = filepath.Join(dir, "natsserver")
		build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
		build.Dir, build.Stderr = filepath.Join("..", "..", "e2e", "natsserver"), os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compile the NATS server:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// server is a server with JetStream.
type server struct {
	dir, port string
	cmd       *exec.Cmd
	in        io.Closer
}

func start(t testing.TB) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), port: "-1"}
	s.run(t)
	t.Cleanup(s.kill)
	return s
}

// run starts the server, on the port that it had.
func (s *server) run(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(program, s.dir, s.port)
	s.cmd.Stderr = os.Stderr
	s.in = must.Get(s.cmd.StdinPipe())(t)
	out := must.Get(s.cmd.StdoutPipe())(t)
	must.Do(t, s.cmd.Start())
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	s.port = must.Get(url.Parse(strings.TrimSpace(line)))(t).Port()
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = s.in.Close()
}

func (s *server) target(t testing.TB) *jetstream.Target {
	t.Helper()
	u := must.Get(url.Parse("nats://127.0.0.1:" + s.port + "/audit"))(t)
	target := must.Get(jetstream.Parse(u))(t)
	t.Cleanup(target.Close)
	return target
}

func (s *server) shipper(t testing.TB, home string) *ship.Shipper {
	t.Helper()
	shipper := must.Get(ship.Open(home, s.target(t), ship.Options{Report: t.Logf, Every: time.Millisecond}))(t)
	t.Cleanup(shipper.Close)
	return shipper
}

// create creates the stream.
func (s *server) create(t testing.TB) {
	t.Helper()
	if from, to, err := s.target(t).Migrate(t.Context()); err != nil || from != 0 || to != 1 {
		t.Fatalf("Migrate = %d, %d, %v", from, to, err)
	}
}

// export returns the data of all messages.
func (s *server) export(t testing.TB) []byte {
	t.Helper()
	nc := must.Get(nats.Connect("127.0.0.1:" + s.port))(t)
	defer nc.Close()
	client := must.Get(js.New(nc))(t)
	consumer := must.Get(client.OrderedConsumer(t.Context(), "audit", js.OrderedConsumerConfig{}))(t)
	left := must.Get(consumer.Info(t.Context()))(t).NumPending
	var all []byte
	for ; left > 0; left-- {
		m := must.Get(consumer.Next())(t)
		all = append(all, m.Data()...)
	}
	return all
}

// verifies fails unless the stream has the rows of the log of a home, each once.
func (s *server) verifies(t testing.TB, home string) {
	t.Helper()
	path := filepath.Join(home, "audit.db")
	l := must.Get(audit.OpenReader(path))(t)
	defer l.Close()
	_, newest, err := l.Ends(t.Context())
	must.Do(t, err)
	e := audit.Evidence{Complete: true, Keys: []string{must.Get(audit.PublicKey(path))(t)}}
	report := must.Get(audit.VerifyExport(bytes.NewReader(s.export(t)), e))(t)
	if !report.OK || int64(report.Lines) != newest.Seq || report.Head != newest.Hash {
		t.Errorf("VerifyExport: %d rows up to %d, %s; the log ends with row %d", report.Lines, report.Last, report.Why,
			newest.Seq)
	}
}

// write adds a session of n requests to the log of a home.
func write(t testing.TB, home string, n int) {
	t.Helper()
	session := audit.NewID()
	l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{Session: session}))(t)
	must.Get(l.Append(t.Context(), audit.Row{Event: audit.EventSessionStarted, SessionID: session}))(t)
	for i := range n {
		must.Do(t, l.AppendSoon(t.Context(), audit.Row{Event: audit.EventProxyProxied, SessionID: session,
			Host: "api.example", Path: fmt.Sprintf("/<%d>", i), RequestID: audit.NewID()}))
	}
	must.Do(t, l.AppendSoon(t.Context(), audit.Row{Event: audit.EventSessionEnded, SessionID: session}))
	must.Do(t, l.Close())
}

func TestTheStreamIsAnExportThatVerifies(t *testing.T) {
	s, home := start(t), t.TempDir()
	write(t, home, 3)
	_, err := s.shipper(t, home).Once(t.Context())
	if !errors.As(err, new(*ship.RefusedError)) || !strings.Contains(err.Error(), "stream not found") {
		t.Errorf("without a stream: %v", err)
	}
	s.create(t)
	must.Get(s.shipper(t, home).Once(t.Context()))(t)
	write(t, home, 3000) // several messages
	must.Get(s.shipper(t, home).Once(t.Context()))(t)
	if again := must.Get(s.shipper(t, home).Once(t.Context()))(t); again.Rows != 0 || again.Newest < 3000 {
		t.Errorf("another shipper sent %+v", again)
	}
	s.verifies(t, home)
	s.signed(t, home)
}

// signed fails unless the newest message has the signed head of its last row.
func (s *server) signed(t testing.TB, home string) {
	t.Helper()
	nc := must.Get(nats.Connect("127.0.0.1:" + s.port))(t)
	defer nc.Close()
	key := must.Get(audit.PublicKey(filepath.Join(home, "audit.db")))(t)
	origin, _ := audit.OriginOf(key)
	stream := must.Get(must.Get(js.New(nc))(t).Stream(t.Context(), "audit"))(t)
	m := must.Get(stream.GetLastMsgForSubject(t.Context(), "aileron.audit."+origin))(t)
	note := must.Get(base64.StdEncoding.DecodeString(m.Header.Get("Aileron-Head")))(t)
	head, _, err := audit.OpenSignedHead(string(note), []string{key})
	if err != nil || fmt.Sprint(head.Seq) != m.Header.Get("Aileron-Seq") || head.Hash != m.Header.Get("Aileron-Hash") {
		t.Errorf("the signed head is %+v, %v, and the message %v", head, err, m.Header)
	}
}

// Every row is there once, although the server is killed while rows are written and two shippers send them.
func TestAStreamThatIsKilledUnderLoad(t *testing.T) {
	s, home := start(t), t.TempDir()
	s.create(t)
	ctx, stop := context.WithCancel(t.Context())
	var both sync.WaitGroup
	for range 2 {
		shipper := s.shipper(t, home)
		both.Go(func() {
			if err := shipper.Follow(ctx); err != nil {
				t.Errorf("Follow: %v", err)
			}
		})
	}
	for range 3 {
		write(t, home, 500)
		s.kill()
		write(t, home, 20)
		s.run(t)
	}
	stop()
	both.Wait()
	s.verifies(t, home)
}

func TestALogThatIsNotTheOneInTheStreamIsRefused(t *testing.T) {
	s, home, old := start(t), t.TempDir(), t.TempDir()
	s.create(t)
	write(t, home, 3)
	must.Do(t, os.CopyFS(old, os.DirFS(home)))
	write(t, home, 3)
	must.Get(s.shipper(t, home).Once(t.Context()))(t)
	_, err := s.shipper(t, old).Once(t.Context())
	if !errors.As(err, new(*ship.RefusedError)) || !strings.Contains(err.Error(), "the log was cut, restored") {
		t.Errorf("Once: %v", err)
	}
}

func TestCredentialsAreNotSentInTheClear(t *testing.T) {
	for text, ok := range map[string]bool{"nats://u:p@nats.example/audit": false, "tls://u:p@nats.example/audit": true,
		"nats://u:p@127.0.0.1/audit": true, "nats://nats.example/": false, "nats:///audit": false} {
		u := must.Get(url.Parse(text))(t)
		if target, err := jetstream.Parse(u); (err == nil) != ok || err == nil && strings.Contains(target.String(), "p@") {
			t.Errorf("Parse(%s) = %v, %v", text, target, err)
		}
	}
}
