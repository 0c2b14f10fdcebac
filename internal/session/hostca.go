package session

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hosttrust"
	"github.com/ALRubinger/aileron/internal/unixsocket"
	"github.com/ALRubinger/aileron/spec"
)

// Certificate describes a root of a session's CA. Its JSON is that of aileron ca show.
type Certificate struct {
	Session   string    `json:"session_id"`
	Subject   string    `json:"subject"`
	SHA256    string    `json:"sha256"` // of its DER, in hexadecimal
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	// Names are the names that it can vouch for, and those below them. Empty: any name.
	Names []string `json:"names"`
	PEM   string   `json:"pem"`
}

// onHost reports whether the session serves programs of this host.
func (o Options) onHost() bool { return o.Mode == "off" || o.Mode == "proxy" }

// maxHostNames bounds the names of a host CA: each of its certificates' chains has them all.
const maxHostNames = 256

// hostNames returns the names that the host CA of a session is for: those that connectors declare when it opens. There
// are none if they are more than [maxHostNames], and none in a sandbox, which trusts its session's root.
func (o Options) hostNames(index *spec.Index) []string {
	if !o.onHost() {
		return nil
	}
	names := map[string]bool{}
	for _, c := range index.Connectors() {
		for _, tool := range c.Tools {
			for _, op := range tool.Operations {
				for _, h := range op.Hosts {
					names[h.Name] = true
				}
			}
		}
	}
	if len(names) > maxHostNames {
		return nil
	}
	return slices.Sorted(maps.Keys(names))
}

// controlCA serves the certificate that programs outside of the session may trust, or else the session's root.
func (s *Session) controlCA(w http.ResponseWriter, _ *http.Request) {
	root, names := s.ca.Root(), []string{}
	if host := s.ca.Host(); host != nil {
		root, names = host.Root, host.Names
	}
	respond(w, 200, describeCertificate(s.id, root, names))
}

func describeCertificate(session string, c *x509.Certificate, names []string) Certificate {
	sum := sha256.Sum256(c.Raw)
	return Certificate{
		Session: session, Subject: c.Subject.String(), SHA256: hex.EncodeToString(sum[:]),
		NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC(), Names: names,
		PEM: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})),
	}
}

// Certificate returns the root of the session's CA that programs outside of the session may trust. A session in a
// sandbox has none, and its root is returned, which is not constrained.
func (s State) Certificate(ctx context.Context, home string) (c Certificate, err error) {
	return s.certificate(ctx, controlClient{home: home, id: s.ID})
}

// HostRoot returns the root that trust stores of this host may have. It refuses a session in a sandbox, whose root can
// vouch for any name, and one whose process is not this user's: another user can make a directory that looks like a
// session, but only where they can write into the home.
func (s State) HostRoot(ctx context.Context, home string) (hosttrust.Root, error) {
	fail := func(err error) (hosttrust.Root, error) {
		return hosttrust.Root{}, fmt.Errorf("trust the root of the session %s: %w", s.ID, err)
	}
	if s.State == "running" && !(Options{Mode: s.Mode}).onHost() {
		return fail(hint.New(errors.New("it is a sandbox's, which can vouch for any name, and is for that sandbox only"),
			"for a browser, open a session of this host: aileron proxy"))
	}
	c, err := s.certificate(ctx, controlClient{home: home, id: s.ID, check: func(conn net.Conn) error {
		_, err := unixsocket.CheckPeer(conn, true)
		return err
	}})
	switch {
	case err != nil:
		return hosttrust.Root{}, err
	case len(c.Names) == 0:
		return fail(hint.New(errors.New("it can vouch for any name: the session has no root for this host"),
			"its connectors declare no host, or more than %d; choose some: aileron proxy --connector NAME", maxHostNames))
	}
	cert, err := ca.ParseHostRoot([]byte(c.PEM), s.ID, time.Now())
	if err != nil {
		return fail(err)
	}
	return hosttrust.Root{Session: s.ID, Cert: cert, Names: c.Names}, nil
}

// certificate is Certificate by way of a client of the session's control socket.
func (s State) certificate(ctx context.Context, control controlClient) (c Certificate, err error) {
	if s.State != "running" {
		return c, hint.New(fmt.Errorf("show the CA of the session %s: it is not running, and its CA ended with it", s.ID),
			"see what runs with: aileron session list")
	}
	if s.newer != nil {
		return c, fmt.Errorf("show the CA of the session %s: %w", s.ID, s.newer)
	}
	raw, err := control.call(ctx, "GET", "/v1/ca", nil)
	if err != nil {
		return c, hint.New(fmt.Errorf("show the CA of the session %s: %w", s.ID, err),
			"it may be starting or at its end, or be of an older aileron; try again")
	}
	if err := json.Unmarshal(raw, &c); err != nil || !strings.Contains(c.PEM, "BEGIN CERTIFICATE") {
		return c, fmt.Errorf("show the CA of the session %s: its response has no certificate", s.ID)
	}
	return c, nil
}

// untrust removes the session's root from the trust stores of this host. The control socket ends first: a process that
// got the root from it has the lock of the account until the record is written, so that none is added after this.
func (s *Session) untrust(ctx context.Context) error {
	if s.closeControl == nil || s.ca == nil || s.ca.Host() == nil {
		return nil
	}
	s.closeControl()
	l := hosttrust.Ledger{Home: s.opts.Home, Locks: s.opts.Locks, Source: audit.SourceLauncher,
		Append: func(ctx context.Context, r audit.Row) error { _, err := s.audit.Append(ctx, r); return err }}
	done, err := l.Untrust(context.WithoutCancel(ctx), s.id)
	if err != nil {
		err = fmt.Errorf("remove the session's root from the trust stores: %w", err)
	}
	return errors.Join(err, NotRemoved(s.id, done))
}

// NotRemoved returns an error that names the stores that may have a session's root although it was to be removed from
// them, nil if there are none.
func NotRemoved(id string, done []hosttrust.Outcome) error {
	var left []error
	for _, o := range done {
		if o.Left {
			left = append(left, hint.New(fmt.Errorf("%s: %s", o.Store, o.Error), "%s", o.Hint))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return hint.New(fmt.Errorf("the root of the session %s may be in %d trust stores still: %w", id, len(left),
		errors.Join(left...)), "remove it with: aileron ca untrust %s", id)
}
