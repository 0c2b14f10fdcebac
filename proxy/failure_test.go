package proxy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
)

func TestEveryKindOfUpstreamErrorHasAReason(t *testing.T) {
	for k := range upstream.Kinds {
		err := &upstream.Error{Kind: k, Host: "api.good.example:443", Detail: "detail", Err: errors.New("secret")}
		d := denyUpstream("api.good.example", err, false)
		if _, ok := meanings[d.Reason]; !ok || d.Reason == ReasonPanic {
			t.Errorf("%v: the reason is %q", k, d.Reason)
		}
		named := strings.Contains(d.Message, "api.good.example") || k == upstream.RequestBody
		if !named || strings.Contains(d.Message, "%!") || strings.Contains(d.Message, "secret") {
			t.Errorf("%v: the message is %q", k, d.Message)
		}
	}
}

func TestAnUpstreamErrorIsDeniedWithItsReason(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason Reason
	}{
		{&upstream.Error{Kind: upstream.Canceled}, ReasonClientGone},
		{&upstream.Error{Kind: upstream.Canceled, Sent: true}, ReasonUndelivered},
		{&upstream.Error{Kind: upstream.AddressDenied, Detail: "private"}, ReasonAddress},
		{&upstream.Error{Kind: upstream.RequestBody, Err: fmt.Errorf("read: %w", wire.ErrBodyTooLarge)}, ReasonTooLarge},
		{&upstream.Error{Kind: upstream.RequestBody, Err: wire.ErrBodyStalled}, ReasonSlow},
		{&upstream.Error{Kind: upstream.RequestBody, Err: budget.ErrShed}, ReasonMemory},
		{&upstream.Error{Kind: upstream.RequestBody, Err: errors.New("broken pipe")}, ReasonClientBody},
		{errors.New("not an upstream error"), ReasonPanic},
	} {
		if d := denyUpstream("h", c.err, false); d.Reason != c.reason {
			t.Errorf("%v (%#v): the reason is %s, want %s", c.err, c.err, d.Reason, c.reason)
		}
	}
}

// An agent repeats what is retriable, and stops where nothing is.
func TestARetriableFailureIsToldApart(t *testing.T) {
	for _, c := range []struct {
		err       upstream.Error
		safe      bool
		retriable bool
		says      string
	}{
		{upstream.Error{Kind: upstream.Reset, Sent: true}, false, false, "Check whether the request took effect"},
		{upstream.Error{Kind: upstream.Reset, Sent: true}, true, true, "changes nothing"},
		{upstream.Error{Kind: upstream.Reset}, false, true, "Nothing was sent"},
		{upstream.Error{Kind: upstream.Timeout, Sent: true}, false, false, "Check whether the request took effect"},
		{upstream.Error{Kind: upstream.Timeout}, false, true, "Nothing was sent"},
		{upstream.Error{Kind: upstream.InvalidStatus, Sent: true}, true, false, "a status that does not exist"},
		{upstream.Error{Kind: upstream.NameNotFound}, true, false, "correct the name"},
		{upstream.Error{Kind: upstream.NameNotResolved}, false, true, "Try again later"},
		{upstream.Error{Kind: upstream.NameNotResolved, Unused: "HTTPS_PROXY"}, true, false, "--upstream-proxy"},
		{upstream.Error{Kind: upstream.NotVerified, Detail: "it is for other names"}, true, false, "other names"},
		{upstream.Error{Kind: upstream.CertificateUnreadable, Detail: "negative serial"}, true, false, "tunnel in"},
		{upstream.Error{Kind: upstream.ClientCertificate, Sent: true}, true, false, "demands a certificate of its client"},
		{upstream.Error{Kind: upstream.HandshakeRefused, Detail: "protocol version"}, true, false, "protocol version"},
		{upstream.Error{Kind: upstream.HandshakeFailed}, false, true, "a fault of its own"},
		{upstream.Error{Kind: upstream.ProxyRefused, Proxy: "p:3128", Detail: "responded with 407"}, true, false,
			"the upstream proxy responded with 407"},
		{upstream.Error{Kind: upstream.ProxyFailed, Proxy: "p:3128", Detail: "responded with 503"}, false, true,
			"Nothing was sent"},
	} {
		d := denyUpstream("h", &c.err, c.safe)
		got := strings.Contains(string(d.JSON()), `"retriable":true`)
		if d.Reason == ReasonTLSUpstream && (d.Status() >= 500) != c.retriable {
			t.Errorf("%v: the status is %d", &c.err, d.Status())
		}
		if strings.Contains(string(d.JSON()), "3128") {
			t.Errorf("%v: the sandbox learns the proxy: %s", &c.err, d.JSON())
		}
		if got != c.retriable || !strings.Contains(d.Text(), c.says) {
			t.Errorf("%v, safe %t: retriable %t, %s", &c.err, c.safe, got, d.Text())
		}
	}
}
