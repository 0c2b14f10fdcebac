package uplink_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/uplink"
)

// key returns a random key.
func key(t *testing.T) uplink.Key {
	t.Helper()
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return must.Get(uplink.ParseKey(fmt.Sprintf("%x", b)))(t)
}

// logged is what a log has been given.
type logged struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// pair is a plane and a relay that know each other, and which of them dials.
type pair struct {
	plane *uplink.Uplink
	relay *uplink.Relay
	at    string // where the side that is dialled listens
	log   *logged
	files chan map[string][]byte
}

// newPair connects a plane and a relay.
func newPair(t *testing.T, planeDials bool, planeKey, relayKey uplink.Key) *pair {
	t.Helper()
	p := &pair{log: &logged{}, files: make(chan map[string][]byte, 16)}
	p.relay = must.Get(uplink.NewRelay(uplink.RelayConfig{Key: relayKey, Log: p.log.logger(),
		Accept: func(_ context.Context, _ netip.Addr, _ []uint16, files map[string][]byte) error {
			p.files <- files
			return nil
		}}))(t)
	cfg := uplink.Config{Key: planeKey, Log: p.log.logger(), Files: map[string][]byte{"ca.pem": []byte("root")}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	if planeDials {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		p.at, cfg.Address = l.Addr().String(), l.Addr().String()
		running.Go(func() { p.relay.Serve(ctx, l) })
		p.plane = must.Get(uplink.Dial(cfg))(t)
	} else {
		cfg.Address = "127.0.0.1:0"
		p.plane = must.Get(uplink.Listen(cfg))(t)
		p.at = p.plane.Proxy.Addr().String()
		running.Go(func() { p.relay.Connect(ctx, p.at) })
	}
	t.Cleanup(func() {
		cancel()
		p.plane.Close()
		running.Wait()
	})
	return p
}

// echo answers each connection of l with a greeting and what the client has sent, after the client's end.
func echo(l net.Listener, greeting string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			sent, err := io.ReadAll(conn)
			if err == nil {
				_, _ = io.WriteString(conn, greeting+string(sent))
			}
		}()
	}
}

func ask(t *testing.T, r *uplink.Relay, kind uplink.Kind, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	conn := must.Get(r.Open(ctx, kind))(t)
	defer conn.Close()
	must.Get(io.WriteString(conn, text))(t)
	must.Do(t, conn.CloseWrite())
	return string(must.Get(io.ReadAll(conn))(t))
}

func TestClientsReachThePlaneWhicheverSideDials(t *testing.T) {
	for name, planeDials := range map[string]bool{"the plane dials": true, "the relay dials": false} {
		t.Run(name, func(t *testing.T) {
			k := key(t)
			p := newPair(t, planeDials, k, k)
			go echo(p.plane.Proxy, "proxy ")
			go echo(p.plane.Redirect, "redirect ")
			var clients sync.WaitGroup
			for i := range 100 { // more than are ready at once
				clients.Go(func() {
					kind, want := uplink.Proxy, "proxy "
					if i%2 == 1 {
						kind, want = uplink.Redirect, "redirect "
					}
					text := strings.Repeat(fmt.Sprint(i, " "), 5000)
					if got := ask(t, p.relay, kind, text); got != want+text {
						t.Errorf("client %d got %d bytes, want %q and its own", i, len(got), want)
					}
				})
			}
			clients.Wait()
			if got := string((<-p.files)["ca.pem"]); got != "root" {
				t.Errorf("the relay has the file %q, want what the plane gave", got)
			}
			if !p.plane.Connected() {
				t.Error("the plane does not know that its relay is there")
			}
		})
	}
}

// What is granted later has variables of its own: the sandbox gets them, and its clients keep their connections.
func TestTheSandboxGetsTheFilesOfNow(t *testing.T) {
	for _, planeDials := range []bool{true, false} {
		k := key(t)
		p := newPair(t, planeDials, k, k)
		<-p.files
		conn := must.Get(p.relay.Open(t.Context(), uplink.Proxy))(t)
		theirs := must.Get(p.plane.Proxy.Accept())(t)
		must.Do(t, p.plane.Publish(map[string][]byte{"ca.pem": []byte("root"), "env": []byte("A=b")}))
		if got := string((<-p.files)["env"]); got != "A=b" {
			t.Errorf("the relay has the file %q", got)
		}
		go echo(p.plane.Proxy, "")
		if got := ask(t, p.relay, uplink.Proxy, "next"); got != "next" {
			t.Errorf("the next client got %q", got)
		}
		must.Get(io.WriteString(theirs, "kept"))(t)
		must.Get(io.ReadFull(conn, make([]byte, 4)))(t)
		_, _ = conn.Close(), theirs.Close()
		if p.plane.Publish(map[string][]byte{"../x": nil}) == nil {
			t.Error("a file that is elsewhere was published")
		}
	}
}

// stranger returns a certificate that no session has.
func stranger(t *testing.T) tls.Certificate {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, pub, priv))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: priv}
}

// Each is refused with its reason in the log, and no byte reaches a listener.
func TestOthersAreRefusedByName(t *testing.T) {
	for name, planeDials := range map[string]bool{"at the relay": true, "at the plane": false} {
		t.Run(name, func(t *testing.T) {
			k := key(t)
			p := newPair(t, planeDials, k, k)
			go echo(p.plane.Proxy, "")
			ask(t, p.relay, uplink.Proxy, "the session's own")
			role := map[bool]string{true: "plane", false: "relay"}[planeDials]
			protocols := slices.Repeat([]string{strings.Repeat("x", 250)}, 99)
			own := tls.Config{InsecureSkipVerify: true, NextProtos: []string{"aileron-uplink/1"}}
			with := func(change func(*tls.Config)) *tls.Config {
				c := own.Clone()
				change(c)
				return c
			}
			for _, c := range []struct {
				who    string
				config *tls.Config
				want   string
			}{
				{"no certificate", &own, "it has no certificate"},
				{"another's certificate", with(func(c *tls.Config) { c.Certificates = []tls.Certificate{stranger(t)} }),
					"the certificate is not that of this session's " + role + ": its public key is sha256:"},
				{"TLS 1.2", with(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), "it speaks no TLS 1.3"},
				{"a browser", with(func(c *tls.Config) { c.NextProtos = []string{"h2"} }), "it does not speak aileron-uplink/1"},
				{"no TLS", nil, "it does not speak TLS"},
				{"many protocols", with(func(c *tls.Config) { c.NextProtos = protocols }), "it does not speak aileron-uplink/1"},
			} {
				raw := must.Get(net.Dial("tcp", p.at))(t)
				_ = raw.SetDeadline(time.Now().Add(harness.Patience))
				conn := raw
				if c.config != nil {
					conn = tls.Client(raw, c.config)
				}
				_, err := io.WriteString(conn, "H\x00\x00\x00\x02{}")
				if err == nil {
					_, err = io.ReadAll(conn)
				}
				if err == nil && c.config != nil {
					t.Errorf("%s: it was served", c.who)
				}
				_ = raw.Close()
				harness.WaitFor(t, c.who+": its refusal in the log", func() bool {
					return strings.Contains(p.log.String(), c.want)
				})
			}
			for line := range strings.Lines(p.log.String()) {
				if len(line) > 1000 {
					t.Errorf("a client that was refused has filled a line of the log with %d bytes", len(line))
				}
			}
			ask(t, p.relay, uplink.Proxy, "the session's own")
		})
	}
}

// A plane or a relay of another session has a certificate too.
func TestAnotherSessionsKeyIsRefusedByBothSides(t *testing.T) {
	for _, planeDials := range []bool{true, false} {
		p := newPair(t, planeDials, key(t), key(t))
		harness.WaitFor(t, "the refusal in the log", func() bool {
			return strings.Contains(p.log.String(), "is not that of this session's")
		})
		if p.plane.Connected() {
			t.Error("a relay with another key is connected")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if conn, err := p.relay.Open(ctx, uplink.Proxy); err == nil {
			t.Errorf("a client reached %s", conn.RemoteAddr())
		}
		cancel()
	}
}

// The relay is killed and comes back at its address: the plane finds it again.
func TestThePlaneDialsAgain(t *testing.T) {
	k := key(t)
	log := &logged{}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := l.Addr().String()
	plane := must.Get(uplink.Dial(uplink.Config{Key: k, Address: at, Log: log.logger()}))(t)
	defer plane.Close()
	go echo(plane.Proxy, "")
	for range 3 {
		relay := must.Get(uplink.NewRelay(uplink.RelayConfig{Key: k}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); relay.Serve(ctx, l) }()
		if got := ask(t, relay, uplink.Proxy, "hello"); got != "hello" {
			t.Errorf("got %q", got)
		}
		cancel()
		<-ended
		harness.WaitFor(t, "the plane to see that its relay is gone", func() bool { return !plane.Connected() })
		l = must.Get(net.Listen("tcp", at))(t)
	}
	_ = l.Close()
}

// A plane is killed in the middle of a response, whose connection ends. The next plane serves the clients that wait.
func TestTheNextPlaneServesTheClientsThatWait(t *testing.T) {
	k := key(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	relay := must.Get(uplink.NewRelay(uplink.RelayConfig{Key: k}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go relay.Serve(ctx, l)
	first := must.Get(uplink.Dial(uplink.Config{Key: k, Address: l.Addr().String()}))(t)
	conn := must.Get(relay.Open(t.Context(), uplink.Proxy))(t)
	theirs := must.Get(first.Proxy.Accept())(t)
	must.Get(io.WriteString(theirs, "half"))(t)
	must.Get(io.ReadFull(conn, make([]byte, 4)))(t)
	first.Close()
	_ = theirs.(*tls.Conn).NetConn().Close() // as the kernel does
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	var timeout net.Error
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("a response whose plane was killed: %v, want its end", err)
	}
	answered := make(chan string, 1)
	go func() { answered <- ask(t, relay, uplink.Proxy, "hello") }()
	second := must.Get(uplink.Dial(uplink.Config{Key: k, Address: l.Addr().String()}))(t)
	defer second.Close()
	go echo(second.Proxy, "second ")
	if got := <-answered; got != "second hello" {
		t.Errorf("a client that waited got %q", got)
	}
}

func TestASecondPlaneDoesNotTakeTheFirstOnesPlace(t *testing.T) {
	k := key(t)
	p := newPair(t, true, k, k)
	go echo(p.plane.Proxy, "first ")
	ask(t, p.relay, uplink.Proxy, "")
	log := &logged{}
	second := must.Get(uplink.Dial(uplink.Config{Key: k, Address: p.at, Log: log.logger()}))(t)
	defer second.Close()
	harness.WaitFor(t, "the refusal of the second plane", func() bool {
		return strings.Contains(log.String(), "the relay refuses this plane: another plane serves this sandbox")
	})
	if got := ask(t, p.relay, uplink.Proxy, ""); got != "first " {
		t.Errorf("a client got %q", got)
	}
}

// The network ends the plane's connection without a word to the relay, which sees its end only after the plane is back.
func TestAConnectionThatIsLostOnOneSideDoesNotEndTheNextOne(t *testing.T) {
	k, log := key(t), &logged{}
	l, between := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t), must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	hellos := make(chan struct{}, 16)
	relay := must.Get(uplink.NewRelay(uplink.RelayConfig{Key: k, Log: log.logger(),
		Accept: func(context.Context, netip.Addr, []uint16, map[string][]byte) error {
			hellos <- struct{}{}
			return nil
		}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { relay.Serve(ctx, l) })
	ends := make(chan [2]net.Conn, 1) // of the first connection, which is the plane's control
	running.Go(func() {
		for first := true; ; first = false {
			near, err := between.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				_ = near.Close()
				return
			}
			if first {
				ends <- [2]net.Conn{near, far}
			}
			running.Go(func() {
				if _, _ = io.Copy(far, near); !first {
					_ = far.Close()
				}
			})
			running.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
	plane := must.Get(uplink.Dial(uplink.Config{Key: k, Address: between.Addr().String()}))(t)
	go echo(plane.Proxy, "")
	t.Cleanup(func() {
		plane.Close()
		_ = between.Close()
		cancel()
		running.Wait()
	})
	<-hellos
	ask(t, relay, uplink.Proxy, "")
	control := <-ends
	_ = control[0].Close()
	<-hellos
	_ = control[1].Close()
	harness.WaitFor(t, "the relay to see the end of the first connection", func() bool {
		return strings.Contains(log.String(), "the plane was lost")
	})
	if got := ask(t, relay, uplink.Proxy, "hello"); got != "hello" {
		t.Errorf("after that, a client got %q", got)
	}
}

func TestARelayThatObjectsIsNotServed(t *testing.T) {
	k := key(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	relay := must.Get(uplink.NewRelay(uplink.RelayConfig{Key: k,
		Accept: func(_ context.Context, at netip.Addr, ports []uint16, _ map[string][]byte) error {
			return fmt.Errorf("the fence is open: %v answered at %v", at, ports)
		}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go relay.Serve(ctx, l)
	log := &logged{}
	plane := must.Get(uplink.Dial(uplink.Config{Key: k, Address: l.Addr().String(), Ports: []uint16{9464},
		Log: log.logger()}))(t)
	defer plane.Close()
	harness.WaitFor(t, "the relay's objection", func() bool {
		return strings.Contains(log.String(), "the fence is open: 127.0.0.1 answered at [9464]")
	})
	if plane.Connected() {
		t.Error("the plane is connected")
	}
}

func TestKeys(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct{ text, want string }{
		{good, ""},
		{good + "\n", ""},
		{good + "\r\n", ""},
		{"", "it has 0 characters"},
		{good[:42], "it has 42 characters"},
		{strings.Repeat(good, 9), "characters, and must have 43 to 512"},
		{strings.Repeat("changeme", 8), "it is not random"},
		{good + "\n\n", "neither hexadecimal nor base64"},
		{good + " ", "neither hexadecimal nor base64"},
	} {
		file := filepath.Join(t.TempDir(), "key")
		must.Do(t, os.WriteFile(file, []byte(c.text), 0o600))
		k, err := uplink.ReadKey(file)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), good[:12]) {
			t.Errorf("the error has the key: %v", err)
		}
		if s := fmt.Sprintf("%v %+v %#v %s", k, k, k, k); strings.Contains(s, good[:12]) {
			t.Errorf("a key prints as %s", s)
		}
	}
	if _, err := uplink.ReadKey(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing key: %v", err)
	}
}

func TestFilesHaveNamesOnly(t *testing.T) {
	for _, name := range []string{"../etc", "a/b", ".hidden", "", "a\nb"} {
		cfg := uplink.Config{Key: key(t), Address: "127.0.0.1:1", Files: map[string][]byte{name: nil}}
		if u, err := uplink.Dial(cfg); err == nil {
			u.Close()
			t.Errorf("the name %q was taken", name)
		}
	}
}
