package proxy

import (
	"errors"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// upstreamDenial returns the denial of a request to host that failed with err,
// which is an [*upstream.Error]. It is the one place where a kind of upstream
// errors becomes a reason.
func upstreamDenial(host string, err error) *Denial {
	var e *upstream.Error
	if !errors.As(err, &e) {
		return deny(reasonUpstream, "the connection to %s broke before it responded", host)
	}
	switch e.Kind {
	case upstream.AddressDenied:
		d := deny(reasonAddress, "%s resolves to no address that may be reached (%s)", host, e.Detail)
		d.Requested = "network:" + e.Host
		return d
	case upstream.NoDescriptor:
		return deny(reasonDescriptors, "the process has no file descriptor left for a connection to %s", host)
	case upstream.Canceled:
		if e.Sent { // what was sent cannot be taken back
			return deny(reasonUndelivered, "the client went away before %s answered", host)
		}
		return deny(reasonClientGone, "the client went away before %s answered", host)
	case upstream.NameNotResolved:
		return deny(reasonName, "the name %s cannot be resolved", host)
	case upstream.Unreachable:
		return deny(reasonDial, "no connection to %s could be made", host)
	case upstream.NotTLS:
		return deny(reasonTLSUpstream, "%s does not speak TLS", host)
	case upstream.NotVerified:
		return deny(reasonTLSUpstream, "TLS with %s could not be set up: its certificates are not trusted for that name or too weak, "+
			"or it speaks no TLS 1.2", host)
	case upstream.Timeout:
		return deny(reasonTimeout, "%s did not answer in time", host)
	case upstream.Stalled:
		return deny(reasonTimeout, "%s does not take the request's body", host)
	case upstream.HeadTooSlow:
		return deny(reasonUpstreamSlow, "the head of the response of %s did not end in time", host)
	case upstream.NotHTTP:
		return deny(reasonUpstreamHTTP, "the head of the response of %s %s", host, e.Detail)
	case upstream.NotHTTP2:
		return deny(reasonUpstreamHTTP, "%s does not speak HTTP/2 as it agreed to", host)
	case upstream.HeadTooLarge:
		return deny(reasonUpstreamHead, "the head of the response of %s %s", host, e.Detail)
	case upstream.HeadMalformed:
		return deny(reasonUpstream, "the head of the response of %s %s", host, e.Detail)
	case upstream.FramingLookalike:
		return deny(reasonFieldName, "%s sent a field whose name can be taken for one of framing or coding", host)
	case upstream.InvalidStatus:
		return deny(reasonUpstream, "%s answered with a status that there is not", host)
	case upstream.Reset:
		return deny(reasonUpstreamRST, "%s reset the connection or the stream before it responded", host)
	case upstream.Closed:
		return deny(reasonUpstreamEnd, "%s closed the connection before the head of its response had ended", host)
	case upstream.RequestBody:
		return bodyDenial(e.Err)
	}
	return deny(reasonUpstream, "the connection to %s broke before it responded", host)
}

// bodyDenial returns the denial of a request whose body could not be read.
func bodyDenial(err error) *Denial {
	switch {
	case errors.Is(err, wire.ErrBodyTooLarge):
		return deny(reasonTooLarge, "the request body is too large")
	case errors.Is(err, wire.ErrBodyStalled):
		return deny(reasonSlow, "the request body came too slowly")
	case errors.Is(err, budget.ErrShed):
		return exhausted()
	}
	return deny(reasonClientBody, "the request body broke off or its framing is broken")
}

// upstreamKeys returns the keys of the upstream connections that the
// connectors' requests use.
func (p *Plane) upstreamKeys(bound map[spec.FQN]Bound) map[spec.FQN]upstream.Key {
	keys := make(map[spec.FQN]upstream.Key, len(bound))
	for fqn, b := range bound {
		c := b.Credential
		keys[fqn] = p.upstream.Key(c.Kind, c.Username, c.Secret.Reveal())
	}
	return keys
}
