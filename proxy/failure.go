package proxy

import (
	"errors"
	"net/http"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec/body"
)

// DenyFault returns the denial of a request whose head the wire rejected.
func DenyFault(f *wire.ProtocolError) *Denial {
	reason := ReasonMalformed
	switch {
	case f.Memory:
		reason = ReasonMemory
	case f.Status == http.StatusRequestTimeout:
		reason = ReasonSlow
	case f.Status == http.StatusRequestHeaderFieldsTooLarge:
		reason = ReasonHeadTooLarge
	case f.Status == http.StatusRequestEntityTooLarge:
		reason = ReasonTooLarge
	case f.Status == http.StatusTooManyRequests:
		reason = ReasonConcurrency
	case f.Status == http.StatusServiceUnavailable:
		reason = ReasonDraining
	}
	d := reason.Deny("%s", f.Reason)
	if d.Status() == http.StatusBadRequest {
		d.status = f.Status // 414, 417, 501 and 505 are closer than 400
	}
	return d
}

// stepReasons is the table of the reasons for which a step ends an exchange.
var stepReasons = map[modify.Kind]Reason{
	modify.QueryMalformed:     ReasonMalformed,
	modify.NoPlace:            ReasonCredential,
	modify.ContentCoding:      ReasonEncoding,
	modify.Charset:            ReasonCharset,
	modify.PartialContent:     ReasonPartial,
	modify.AmbiguousFieldName: ReasonFieldName,
	modify.Packed:             ReasonPacked,
	modify.Switch:             ReasonSwitch,
}

// denyStep returns the denial of an exchange that a step ended.
func denyStep(err error) *Denial {
	var failed *modify.Error
	if !errors.As(err, &failed) {
		return ReasonPanic.Deny("a step of the exchange failed")
	}
	return stepReasons[failed.Kind].Deny("%s", failed.Message)
}

// cutReason returns why a body ended early: a step rejected what came, or the
// upstream broke off.
func cutReason(err error) Reason {
	var failed *modify.Error
	if errors.As(err, &failed) {
		return stepReasons[failed.Kind]
	}
	return ReasonTruncated
}

// upstreamReasons is the table of what the kinds of upstream errors mean to a
// client: the reason, and a message about the host (%[1]s) and the error's detail
// (%[2]s). [upstream.RequestBody] is not among them: it is about the client.
var upstreamReasons = map[upstream.Kind]struct {
	reason  Reason
	message string
}{
	upstream.AddressDenied:    {ReasonAddress, "%[1]s resolves to no address that may be reached (%[2]s)"},
	upstream.NameNotResolved:  {ReasonName, "the name %[1]s cannot be resolved: no name server gives an answer"},
	upstream.NameNotFound:     {ReasonName, "the name %[1]s cannot be resolved: there is none, or it has no address"},
	upstream.OutOfDescriptors: {ReasonDescriptors, "the process has no file descriptor left for a connection to %[1]s"},
	upstream.Unreachable:      {ReasonDial, "no connection to %[1]s could be made"},
	upstream.NotTLS:           {ReasonTLSUpstream, "%[1]s does not speak TLS"},
	upstream.NotVerified:      {ReasonTLSUpstream, "TLS with %[1]s could not be set up: %[2]s"},
	upstream.UntrustedAuthority: {ReasonTLSUpstream,
		"TLS with %[1]s could not be set up: its certificate is of an authority that this host does not trust"},
	upstream.CertificateUnreadable: {ReasonTLSUpstream,
		"TLS with %[1]s could not be set up: its certificate cannot be parsed (%[2]s)"},
	upstream.ClientCertificate: {ReasonClientCert, "%[1]s demands a certificate of its client"},
	upstream.HandshakeRefused:  {ReasonTLSUpstream, "%[1]s ended the TLS handshake (%[2]s)"},
	upstream.HandshakeFailed:   {ReasonTLSUpstream, "%[1]s ended the TLS handshake because of a fault of its own"},
	upstream.ProxyRefused:      {ReasonProxyRefused, "there is no tunnel to %[1]s: the upstream proxy %[2]s"},
	upstream.ProxyFailed:       {ReasonProxyFailed, "there is no tunnel to %[1]s: the upstream proxy %[2]s"},
	upstream.Timeout:           {ReasonTimeout, "%[1]s did not respond in time"},
	upstream.BodyStalled:       {ReasonTimeout, "%[1]s does not take the request's body"},
	upstream.HeadTooSlow:       {ReasonUpstreamSlow, "the head of the response of %[1]s did not end in time"},
	upstream.HeadTooLarge:      {ReasonUpstreamHead, "the head of the response of %[1]s %[2]s"},
	upstream.HeadMalformed:     {ReasonUpstream, "the head of the response of %[1]s %[2]s"},
	upstream.NotHTTP:           {ReasonUpstreamHTTP, "the head of the response of %[1]s %[2]s"},
	upstream.NotHTTP2:          {ReasonUpstreamHTTP, "%[1]s does not speak HTTP/2 as it agreed to"},
	upstream.InvalidStatus:     {ReasonUpstream, "%[1]s responded with a status that does not exist"},
	upstream.FramingLookalike: {ReasonFieldName,
		"%[1]s sent a field whose name can be taken for one of framing or coding"},
	upstream.Reset: {ReasonUpstreamRST, "%[1]s reset the connection or the stream before it responded"},
	upstream.Closed: {ReasonUpstreamEnd,
		"%[1]s closed the connection before the head of its response had ended"},
	upstream.Unprocessed: {ReasonUpstreamUnprocessed,
		"%[1]s did not process the request: it ended the connection, or had no room for it"},
	upstream.Broken:   {ReasonUpstream, "the connection to %[1]s broke before it responded"},
	upstream.Canceled: {ReasonClientGone, "the client went away before %[1]s responded"},
}

// isSafe reports whether requests of a method change nothing, whatever becomes of them (RFC 9110 section 9.2.1).
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// adviceOf returns what e means to a client where its reason has other causes too, or nil. safe is [isSafe] of the
// request.
func adviceOf(e *upstream.Error, safe bool) *advice {
	switch e.Kind {
	case upstream.NameNotFound:
		return &advice{false, "Nothing was sent. Do not retry: correct the name."}
	case upstream.UntrustedAuthority:
		return &advice{false, "Nothing was sent. Do not retry: the user can add a root that is missing with --upstream-ca."}
	case upstream.CertificateUnreadable:
		return &advice{false, "Nothing was sent. Do not retry. The owner of the host has to replace the certificate; " +
			"if no connector names the host, the user can have its TLS relayed undecrypted: tunnel in config.toml."}
	case upstream.HandshakeRefused, upstream.NotTLS:
		return &advice{false, "Nothing was sent. Do not retry: it does not pass with time."}
	case upstream.HandshakeFailed:
		return &advice{true, "Nothing was sent, so it may be sent again. Try again later."}
	case upstream.Broken, upstream.Reset, upstream.Closed, upstream.Timeout, upstream.BodyStalled, upstream.HeadTooSlow:
		if !e.Sent {
			return &advice{true, "Nothing was sent, so it may be sent again."}
		}
		if safe {
			return &advice{true, "The request changes nothing, so it may be sent again."}
		}
	}
	return nil
}

// denyUpstream returns the denial of a request to host that failed with err, an
// error of [upstream.Client]. It is the one place where a kind of upstream errors
// becomes a reason.
func denyUpstream(host string, err error, safe bool) *Denial {
	var e *upstream.Error
	if !errors.As(err, &e) {
		return ReasonPanic.Deny("the connection to %s failed", host)
	}
	if e.Kind == upstream.RequestBody {
		return DenyBody(e.Err)
	}
	row := upstreamReasons[e.Kind]
	d := row.reason.Deny(row.message, host, e.Detail)
	d.advice = adviceOf(e, safe)
	switch {
	case e.Unused != "":
		d.Message += "; this host uses a proxy (" + e.Unused + "), and the session does not"
		d.advice = &advice{false, "Do not retry: ask the user to start the session with --upstream-proxy URL, " +
			"or to set proxy below [upstream] in config.toml."}
	case e.Kind == upstream.AddressDenied:
		d.Requested = "network:" + e.Host
		if e.Range.IsValid() {
			d.Message += "; the resolver of this host answers every name with such an address, as local proxies do"
			d.advice = &advice{false, "Do not retry: ask the user whether to allow them, with allow_ranges = [\"" +
				e.Range.String() + "\"] below [upstream] in config.toml."}
		}
	case e.Kind == upstream.HandshakeFailed: // the one cause of its reason that passes
		return d.WithStatus(http.StatusBadGateway)
	case e.Kind == upstream.Canceled && e.Sent: // what was sent cannot be taken back
		d.Reason = ReasonUndelivered
	}
	return d
}

// DenyBody returns the denial of a request whose body could not be read.
func DenyBody(err error) *Denial {
	switch {
	case errors.Is(err, wire.ErrBodyTooLarge):
		return ReasonTooLarge.Deny("the request body is too large")
	case errors.Is(err, wire.ErrBodyStalled):
		return ReasonSlow.Deny("the request body came too slowly")
	case errors.Is(err, budget.ErrShed):
		return DenyMemory()
	case errors.Is(err, judge.ErrOverride):
		return ReasonContent.Deny("%v", err)
	case errors.Is(err, body.ErrUpload), errors.Is(err, body.ErrBoundary):
		return ReasonClientBody.Deny("%v", err)
	}
	return ReasonClientBody.Deny("the request body broke off or its framing is broken")
}
