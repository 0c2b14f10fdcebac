package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// mediationKind is how the traffic of a sandbox reaches the proxy.
type mediationKind int

const (
	sealed     mediationKind = iota // by its only uplink
	byAlias                         // by the proxy variables: by convention
	unmediated                      // not at all, as the user asked for
)

// mediation is how a sandbox reaches the proxy, and what its command is told about that.
type mediation struct {
	kind     mediationKind
	proxyURL string
	apiURL   string
	apiHost  string
}

// chooseMediation decides how the sandbox is mediated. It prints that where the sandbox is not sealed: a person must
// not learn it from the audit log alone.
func (b *sandboxed) chooseMediation(ctx context.Context) (mediation, error) {
	if b.Proxy == "off" {
		b.Infof("aileron: NOT MEDIATED: --sandbox-proxy=off gives the sandbox the network of %s; it gets no credential, "+
			"and nothing that it sends is checked or recorded", b.prepared.Kind())
		return mediation{kind: unmediated}, nil
	}
	why := b.prepared.Unsealable
	if b.prepared.Carried != "" {
		b.Infof("aileron: %s; its connections are carried to this host over the engine's API, and by nothing else",
			b.prepared.Carried)
	}
	if b.prepared.Sealed {
		return mediation{kind: sealed, proxyURL: session.SealedProxy, apiHost: proxy.APIHost, apiURL: session.SealedAPI}, nil
	}
	if b.Proxy == "on" {
		b.session.RecordDisabled(ctx, reasonUnsealed, why)
		return mediation{}, hint.New(fmt.Errorf("seal the sandbox: %s", why),
			"use an engine that runs on this host, or --sandbox-proxy=auto for mediation by convention")
	}
	b.Infof("aileron: NOT SEALED: %s", why)
	b.Infof("aileron: the sandbox has the engine's own network. What uses the proxy variables is mediated; what ignores " +
		"them reaches the network past aileron, without a credential and without an audit event. " +
		"--sandbox-proxy=on refuses such a sandbox.")
	return mediation{kind: byAlias}, nil
}

// listen serves the session where the sandbox reaches it.
func (m *mediation) listen(ctx context.Context, s *session.Session, engine *sandbox.Engine, sockets string) error {
	switch m.kind {
	case sealed:
		// Their directory is inside one that only this user may enter.
		uplink, err := session.OpenUplink(sockets)
		if err != nil {
			return err
		}
		s.ListenSealed(ctx, uplink)
	case byAlias:
		l, err := engine.ListenForAlias(ctx)
		if err != nil {
			return err
		}
		at, _ := l.Addr().(*net.TCPAddr)
		m.apiHost = engine.HostAlias()
		host := net.JoinHostPort(m.apiHost, strconv.Itoa(at.Port))
		m.proxyURL, m.apiURL = "http://aileron:"+s.Token()+"@"+host, "http://"+host+"/v1"
		s.Listen(ctx, l, front.Listener{Names: []string{host}})
	case unmediated:
		s.RecordDisabled(ctx, reasonOptOut, "--sandbox-proxy=off")
	}
	return nil
}

// environment returns the variables of CONTRACT section 3. A sandbox that is not mediated gets those that describe it,
// and no others.
func (m *mediation) environment(s *session.Session, runtime string, image sandbox.Image, unattended bool) []string {
	state := "0" // not left out: it overrides a variable of the image
	if unattended {
		state = "1"
	}
	env := []string{"AILERON_SESSION_ID=" + s.ID(), "AILERON_UNATTENDED=" + state,
		"AILERON_SANDBOX_TIER=" + image.Tier(), "AILERON_SANDBOX_RUNTIME=" + runtime, "AILERON_SANDBOX_IMAGE=" + image.Ref}
	if m.kind == unmediated {
		return env
	}
	env = append(env, m.clients().Variables()...)
	env = append(env, "AILERON_API_URL="+m.apiURL, "AILERON_TOKEN="+s.Token(),
		"AILERON_TOOLS_FILE="+toolsFile, "AILERON_SHIMS_DIR=/usr/local/bin")
	return append(env, s.Placeholders()...)
}

// clients returns what clients in the sandbox learn from variables.
func (m *mediation) clients() trust.Environment {
	return trust.Environment{
		Proxy: m.proxyURL, NoProxy: []string{"localhost", "127.0.0.1", "::1", m.apiHost},
		CA: trust.CAFile, Bundle: trust.BundleFile, JavaStore: trust.JavaStoreFile,
	}
}

// CanTrust returns an error unless an image can be made to trust a session: a [*trust.Error] if the image prevents it,
// and a [*sandbox.ArchitectureError] if it is made for other machines.
func CanTrust(ctx context.Context, e *sandbox.Engine, image sandbox.Image, log *slog.Logger) error {
	trial, err := ca.NewSession(ca.Options{Session: "check"})
	if err != nil {
		return err
	}
	opened, err := e.OpenImage(ctx, image)
	if err != nil {
		return err
	}
	defer opened.Close()
	_, _, err = trustFiles(opened, image, trial.RootPEM(), nil, log)
	return err
}

// trustFiles returns what is put into the container of an image before it starts: a root wherever some runtime looks
// for roots, and the files that describe the sandbox to its agent. All of it is public. javaInPlace is that of
// [trust.Installed]. The error is a [*trust.Error] if the image prevents it.
func trustFiles(
	opened *sandbox.ImageFS, image sandbox.Image, root []byte, described []trust.File, log *slog.Logger,
) (put []sandbox.File, javaInPlace bool, err error) {
	installed, err := trust.Install(opened, root, trust.Options{
		Getenv: opened.Getenv, Mounted: sandbox.Mounted(), Extra: described, Log: log,
	})
	if blamed, ok := errors.AsType[*trust.Error](err); ok && errors.Is(err, engine.ErrEngine) {
		return nil, false, blamed.Cause // the engine's fault, not the image's
	}
	if err != nil {
		return nil, false, fmt.Errorf("make the image %s trust the session: %w", image.Ref, err)
	}
	for _, f := range installed.Files {
		put = append(put, sandbox.File(f))
	}
	return put, installed.JavaInPlace, nil
}
