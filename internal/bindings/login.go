package bindings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// Login is how a person logs in where a connector declares that (spec.OAuth2).
type Login struct {
	NoBrowser        bool   // print the address, and read the one at which a browser elsewhere ended
	Port             int    // of http://localhost:PORT/callback; 0: any
	ClientID         string // the person's own client; "": the connector's
	ClientSecretFile string
	// Upstream returns how authorization servers are reached; nil: directly.
	Upstream func() (upstream.Options, error)

	reading <-chan typed // of a line that nothing took yet; nil: there is none
}

// Given reports whether it names a client.
func (l *Login) Given() bool { return l.ClientID != "" || l.ClientSecretFile != "" }

// login is one login under way.
type login struct {
	*Login
	u         *unlock.Unlocker
	connector *spec.Connector
	server    oauth.Server
	command   string // that makes it, with flags
	port      int    // of its callback
}

// run logs in for a binding of c, and returns the binding and the credential to keep. before is the grant that it takes
// the place of, whose client is used again; nil: there is none.
func (l *Login) run(ctx context.Context, u *unlock.Unlocker, c *spec.Connector, b vault.Binding, before *oauth.Grant,
) (vault.Binding, vault.Credential, error) {
	in := &login{Login: l, u: u, connector: c, server: oauth.Server{OAuth2: *c.Credential().OAuth2},
		command: "aileron binding setup " + string(c.FQN), port: l.Port}
	if !b.Created.IsZero() {
		in.command = "aileron binding rebind " + b.Name
	}
	// The second line of a paste is not for the next reader of the terminal: an agent, or a shell.
	defer u.DiscardTyped()
	if err := in.chooseClient(ctx, before); err != nil {
		return b, vault.Credential{}, err
	}
	client, err := l.client()
	if err != nil {
		return b, vault.Credential{}, err
	}
	defer client.Close()
	in.server.Transport = client.Transport()
	if err := in.show(); err != nil {
		return b, vault.Credential{}, err
	}
	var g oauth.Grant
	err = u.Interruptible(ctx, func(ctx context.Context) error {
		g, err = in.logIn(ctx)
		return err
	})
	var cred vault.Credential
	if err == nil {
		cred, err = g.Credential()
	}
	if exit := (console.ExitError{}); err != nil && !errors.As(err, &exit) {
		err = hint.New(fmt.Errorf("log in for %s: %w", c.FQN, err), "nothing was stored; try again%s", in.advice(err))
	}
	return g.Facts(b), cred, err
}

// client returns what asks authorization servers.
func (l *Login) client() (*upstream.Client, error) {
	opts := upstream.Options{}
	if l.Upstream != nil {
		var err error
		if opts, err = l.Upstream(); err != nil {
			return nil, err
		}
	}
	return upstream.New(opts)
}

// endLogin ends a login at its service, or says why it could not. The binding is gone already.
func (l *Login) endLogin(ctx context.Context, u *unlock.Unlocker, b vault.Binding, c vault.Credential, why error) {
	g, _, err := oauth.Of(c)
	if err = cmp.Or(why, err); err == nil {
		var client *upstream.Client
		if client, err = l.client(); err == nil {
			defer client.Close()
			var told bool
			if told, err = g.Revoke(ctx, client.Transport()); told {
				u.Infof("aileron: the service has ended the login too")
				return
			}
			err = cmp.Or(err, errNoRevocation)
		}
	}
	u.Infof("aileron: the login goes on at the service until it is ended there, in the settings of the account: %v", err)
}

// errNoRevocation is the error of a service that is not told of the end of a login.
var errNoRevocation = errors.New("the connector declares no revoke_url")

// advice returns what else helps after an error.
func (in *login) advice(err error) string {
	if refused := new(oauth.RefusedError); errors.As(err, &refused) {
		switch refused.Code {
		case "invalid_client", "unauthorized_client":
			return ", with the client that is registered at the service: " + in.command +
				" --client-id ID --client-secret-file FILE"
		case "invalid_scope":
			return " when the client may have the scopes of the connector"
		}
	}
	return ""
}

// chooseClient decides which client asks: that of the flags, that of the login before, or the publisher's.
func (in *login) chooseClient(ctx context.Context, before *oauth.Grant) (err error) {
	s, asked := &in.server, false
	switch {
	case in.ClientID != "":
		s.ClientID, s.ClientSecret = in.ClientID, ""
	case s.ClientID == "" && before != nil:
		s.ClientID, s.ClientSecret = before.Client, before.Secret
	case s.ClientID == "" && !in.u.Interactive():
		return hint.New(fmt.Errorf("log in for %s: the connector has no client of its own", in.connector.FQN),
			"register one at the service, and: %s --client-id ID, with --client-secret-file FILE if it has a secret",
			in.command)
	case s.ClientID == "":
		if s.ClientID, err = in.u.PromptLine("client id for " + string(in.connector.FQN) + ":"); err != nil {
			return err
		}
		asked = true
		if s.Grant == logins.GrantCode && in.port == 0 {
			if err := in.askPort(); err != nil {
				return err
			}
		}
	}
	if s.ClientID == "" || strings.ContainsAny(s.ClientID, " \t\r\n") || len(s.ClientID) > 512 {
		return failure.Usagef("--client-id is not the id of a client")
	}
	return in.chooseSecret(ctx, asked)
}

// askPort asks for the port of the callback: some services compare it with that of the client's registration.
func (in *login) askPort() error {
	line, err := in.u.PromptLine("port of its callback, http://localhost:PORT/callback (Enter: any):")
	if err != nil || line == "" {
		return err
	}
	if in.port, err = strconv.Atoi(line); err != nil || in.port < 1 || in.port > 65535 {
		return failure.Usagef("the port of the callback must be 1 to 65535")
	}
	return nil
}

// chooseSecret reads the client's secret where one is named or needed. asked: its id was typed, and a secret may belong
// to that.
func (in *login) chooseSecret(ctx context.Context, asked bool) error {
	s := &in.server
	from := SecretSource{File: in.ClientSecretFile}
	switch {
	case from.Given():
	case asked && s.Grant != logins.GrantClient:
		raw, err := in.u.ReadUnseen(ctx, "secret of the client (Enter: it has none)")
		if err != nil || len(raw) == 0 {
			return err
		}
		secret, err := vault.NewSecret(raw)
		s.ClientSecret = secret.Reveal()
		return err
	case s.Grant == logins.GrantClient && s.ClientSecret == "":
		if !in.u.Interactive() {
			return hint.New(fmt.Errorf("log in for %s: its client needs a secret", in.connector.FQN),
				"pass --client-secret-file")
		}
	default:
		return nil
	}
	secret, err := from.Read(ctx, in.u, "secret of the client "+s.ClientID)
	s.ClientSecret = secret.Reveal()
	return err
}

// show prints who asks for what, before a page of the service does.
func (in *login) show() error {
	s, u := &in.server, in.u
	installed, err := u.OpenStore()
	if err != nil {
		return err
	}
	whose := "yours"
	if s.ClientID == in.connector.Credential().OAuth2.ClientID {
		whose = "of the publisher, " + in.connector.FQN.Owner()
	}
	u.Infof("aileron: log in for %s", in.connector.FQN)
	u.Infof("  publisher  %s", connectors.CheckInstalled(u.Dir, installed, signature.ClaimOf(in.connector)).Text())
	u.Infof("  client     %s (%s)", s.ClientID, whose)
	for _, scope := range s.Scopes {
		u.Infof("  scope      %s", scope)
	}
	if page := cmp.Or(s.AuthorizeURL, s.DeviceURL); s.Grant != logins.GrantClient && page != "" {
		u.Infof("  page       %s", page)
	}
	u.Infof("  tokens     %s", s.TokenURL)
	return nil
}

func (in *login) logIn(ctx context.Context) (oauth.Grant, error) {
	switch in.server.Grant {
	case logins.GrantClient:
		return in.server.Client(ctx)
	case logins.GrantDevice:
		return in.server.Device(ctx, func(code, page string) {
			in.u.Infof("aileron: open this page in any browser, and enter the code %s within five minutes:", code)
			in.printPage(page)
		})
	}
	b := oauth.Browser{Server: &in.server, Port: in.port, Show: in.open, Refused: func(err error) {
		in.u.Infof("aileron: an answer was refused: %v; this login goes on: finish it in the page above", err)
	}}
	if in.NoBrowser {
		b.Pasted = in.pasted
	}
	return b.Login(ctx)
}

// open opens the page of the login in a browser, and prints it.
func (in *login) open(page string) {
	switch opener := in.browser(); {
	case in.NoBrowser:
		in.u.Infof("aileron: open this page in a browser. If it ends at an address that cannot be reached, paste that here:")
	case opener == nil:
		in.u.Infof("aileron: open this page in a browser of this host within five minutes; with one elsewhere, press Ctrl-C "+
			"and: %s --no-browser", in.command)
	default:
		in.u.Infof("aileron: a browser opens this page; log in there within five minutes "+
			"(with one elsewhere: %s --no-browser)", in.command)
		cmd := exec.CommandContext(context.Background(), opener[0], append(opener[1:], page)...) //nolint:gosec // a person's
		// A browser outlives Ctrl-C here, and has no use for the passphrase.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, string(unlock.FromEnv)+"=")
		})
		if cmd.Start() == nil {
			go func() { _ = cmd.Wait() }()
		}
	}
	in.printPage(page)
}

// printPage prints an address in one line, whatever the width of the terminal: it is copied.
func (in *login) printPage(page string) { fmt.Fprintln(in.u.Stderr, page) }

// browser returns the command that opens a page, nil if there is none.
func (in *login) browser() []string {
	environ := in.u.Console.Environ
	if environ == nil {
		return nil
	}
	if own := strings.Fields(environ("BROWSER")); len(own) > 0 {
		return own
	}
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	} else if environ("DISPLAY") == "" && environ("WAYLAND_DISPLAY") == "" {
		return nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return []string{path}
	}
	return nil
}

// typed is a line of the input, or why there is none.
type typed struct {
	line []byte
	err  error
}

// pasted returns the line that a person pastes.
func (in *login) pasted(ctx context.Context) (string, error) {
	if in.reading == nil { // by the login before, which another answer has ended
		reading := make(chan typed, 1)
		in.reading = reading
		go func() { // ends with the input, or with the process
			line, err := console.ReadTyped(in.u.Stdin)
			reading <- typed{line, err}
		}()
	}
	select {
	case got := <-in.reading:
		in.reading = nil
		return strings.TrimSpace(string(got.line)), got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
