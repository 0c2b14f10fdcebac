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
		d := denyUpstream("api.good.example", err)
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
		if d := denyUpstream("h", c.err); d.Reason != c.reason {
			t.Errorf("%v (%#v): the reason is %s, want %s", c.err, c.err, d.Reason, c.reason)
		}
	}
}
