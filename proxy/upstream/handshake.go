package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"unicode"
)

// handshakeError is returned for a handshake that failed because of what the host
// sent.
type handshakeError struct {
	error
	asked bool // the host asked for a certificate of its client
}

// Unwrap returns the error of crypto/tls.
func (e *handshakeError) Unwrap() error { return e.error }

// handshakeFailure wraps the error of a host that cannot be trusted in a
// handshakeError, and returns that of a connection that broke or took too long
// as it is. crypto/tls has no type for most of the former.
func handshakeFailure(err error, asked bool) error {
	var network *net.OpError
	if errors.As(err, &network) && (network.Op == "read" || network.Op == "write") {
		return err
	}
	for _, other := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return err
		}
	}
	return &handshakeError{err, asked}
}

// The alerts of a host that are told apart (RFC 8446 section 6).
const (
	handshakeFailed        tls.AlertError = 40
	badCertificate         tls.AlertError = 42
	unsupportedCertificate tls.AlertError = 43
	certificateUnknown     tls.AlertError = 46
	unknownCA              tls.AlertError = 48
	accessDenied           tls.AlertError = 49
	internalError          tls.AlertError = 80
	certificateRequired    tls.AlertError = 116
	noApplicationProtocol  tls.AlertError = 120 // RFC 7301 section 3.2
)

// isRemoteAlert reports whether the host ended a connection with one of alerts.
func isRemoteAlert(err error, alerts ...tls.AlertError) bool {
	var remote *net.OpError // crypto/tls has no type of its own for a peer's alert
	return errors.As(err, &remote) && remote.Op == "remote error" && slices.ContainsFunc(alerts,
		func(a tls.AlertError) bool { return remote.Err.Error() == a.Error() })
}

// alertKind returns what a host's alert means. With TLS 1.3 it may come when the handshake is over for the client.
// asked reports whether the host has asked for a certificate: hosts that want one differ in how they say so.
func alertKind(alert error, asked bool) (kind Kind, detail string) {
	err := &net.OpError{Op: "remote error", Err: alert}
	switch {
	case isRemoteAlert(err, certificateRequired),
		asked && isRemoteAlert(err, handshakeFailed, badCertificate, unsupportedCertificate, certificateUnknown, unknownCA,
			accessDenied):
		return ClientCertificate, ""
	case isRemoteAlert(err, internalError):
		return HandshakeFailed, ""
	}
	return HandshakeRefused, words(strings.TrimPrefix(alert.Error(), "tls: "))
}

// verifyKind returns what is wrong with what a host presented.
func verifyKind(err error) (kind Kind, detail string) {
	const unparsed = "tls: failed to parse certificate from server: "
	if why, ok := strings.CutPrefix(err.Error(), unparsed); ok {
		return CertificateUnreadable, words(strings.TrimPrefix(why, "x509: "))
	}
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch detail = "it speaks no TLS 1.2, or breaks it"; {
	case errors.Is(err, errWeakChain):
		detail = "its chain has a weak key or signature"
	case errors.As(err, &name):
		detail = "its certificate is for other names"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		detail = "its certificate has expired, or is not valid yet"
	case errors.As(err, &authority):
		return UntrustedAuthority, ""
	case errors.As(err, &invalid):
		detail = "its certificate is not valid for a server"
	}
	return NotVerified, detail
}

// words returns the words with which a text of Go's begins. Bytes of the host's own follow behind other characters.
func words(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && r != ' ' && r != '-'
	})
	if end >= 0 {
		text = text[:end]
	}
	return strings.TrimSpace(text)
}
