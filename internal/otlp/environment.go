package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Target is where a session's rows are exported to. Its zero value is nowhere.
type Target struct{ traces, logs *endpoint }

// Enabled reports whether there is anything to export to.
func (t Target) Enabled() bool { return t.traces != nil || t.logs != nil }

// String returns the scheme and the host of the collector. A URL may have a credential in its other parts.
func (t Target) String() string {
	var names []string
	for _, e := range []*endpoint{t.traces, t.logs} {
		if e != nil && (len(names) == 0 || names[0] != e.name()) {
			names = append(names, e.name())
		}
	}
	return strings.Join(names, " and ")
}

// endpoint is where one signal is sent to.
type endpoint struct {
	url     *url.URL
	headers http.Header
	timeout time.Duration
	gzip    bool
	tls     *tls.Config
}

func (e *endpoint) name() string { return e.url.Scheme + "://" + e.url.Host }

// Environment is a function like [os.Getenv].
type Environment func(name string) string

// FromEnvironment returns the target that the variables of the OpenTelemetry specification describe. The error is about
// variables that are not supported or not valid: their signal is not exported. It names them, and never their values,
// which may be secret.
func FromEnvironment(env Environment) (Target, error) {
	if strings.EqualFold(lookup(env, "OTEL_SDK_DISABLED"), "true") {
		return Target{}, nil
	}
	traces, tracesErr := readSignal(env, "TRACES")
	logs, logsErr := readSignal(env, "LOGS")
	if tracesErr != nil && logsErr != nil && tracesErr.Error() == logsErr.Error() {
		logsErr = nil
	}
	return Target{traces, logs}, join(tracesErr, logsErr)
}

// join returns both errors in one line.
func join(a, b error) error {
	if a == nil || b == nil {
		return errors.Join(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

func lookup(env Environment, name string) string { return strings.TrimSpace(env(name)) }

// setting is a variable of the exporter that has a value.
type setting struct{ name, value string }

// read returns a variable of one signal, or else that of all. An empty one is as if it were not set.
func read(env Environment, signal, name string) setting {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_" + name, "OTEL_EXPORTER_OTLP_" + name} {
		if value := lookup(env, name); value != "" {
			return setting{name, value}
		}
	}
	return setting{}
}

// wrong returns an error that names the variable.
func (s setting) wrong(why string) error { return fmt.Errorf("%s %s", s.name, why) }

// readSignal returns where a signal is sent to; nil: nowhere.
func readSignal(env Environment, signal string) (*endpoint, error) {
	at := read(env, signal, "ENDPOINT")
	if at.name == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	which := setting{"OTEL_" + signal + "_EXPORTER", lookup(env, "OTEL_"+signal+"_EXPORTER")}
	switch which.value {
	case "", "otlp":
	case "none":
		return nil, nil //nolint:nilnil // it is not wanted
	default:
		return nil, which.wrong("is not supported: it must be otlp or none")
	}
	if s := read(env, signal, "PROTOCOL"); s.name != "" && s.value != "http/protobuf" {
		return nil, s.wrong("is not supported: it must be http/protobuf")
	}
	e := &endpoint{timeout: 10 * time.Second}
	for _, step := range []func(Environment, string) error{e.readURL, e.readHeaders, e.readLimits, e.readTLS} {
		if err := step(env, signal); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// readURL sets where the signal is sent to. The path of a signal is added to the URL of all signals only.
func (e *endpoint) readURL(env Environment, signal string) error {
	s := read(env, signal, "ENDPOINT")
	u, err := url.Parse(s.value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return s.wrong("is not an http or https URL")
	}
	if s.name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", strings.ToLower(signal))
	}
	if u.Path == "" {
		u.Path = "/"
	}
	e.url = u
	return nil
}

// readHeaders sets the headers, which are written like W3C baggage: NAME=VALUE,… with percent-encoded values.
func (e *endpoint) readHeaders(env Environment, signal string) error {
	s := read(env, signal, "HEADERS")
	e.headers = http.Header{}
	for pair := range strings.SplitSeq(s.value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return s.wrong("is not a list of NAME=VALUE")
		}
		e.headers.Set(name, value)
	}
	return nil
}

// readLimits sets the time-out of an attempt, and the compression.
func (e *endpoint) readLimits(env Environment, signal string) error {
	if s := read(env, signal, "TIMEOUT"); s.name != "" {
		ms, err := strconv.Atoi(s.value)
		if err != nil || ms <= 0 || ms > int(time.Hour/time.Millisecond) {
			return s.wrong("is not a number of milliseconds")
		}
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	switch s := read(env, signal, "COMPRESSION"); s.value {
	case "", "none":
	case "gzip":
		e.gzip = true
	default:
		return s.wrong("is not supported: it must be gzip or none")
	}
	return nil
}

// readTLS sets the roots and the client's certificate. Without variables, the roots are those of the system.
func (e *endpoint) readTLS(env Environment, signal string) error {
	e.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if s := read(env, signal, "CERTIFICATE"); s.name != "" {
		pem, err := os.ReadFile(s.value)
		e.tls.RootCAs = x509.NewCertPool()
		if err != nil || !e.tls.RootCAs.AppendCertsFromPEM(pem) {
			return s.wrong("is not a file of certificates that can be read")
		}
	}
	cert, key := read(env, signal, "CLIENT_CERTIFICATE"), read(env, signal, "CLIENT_KEY")
	switch {
	case cert.name == "" && key.name == "":
		return nil
	case cert.name == "":
		return key.wrong("needs a client certificate")
	case key.name == "":
		return cert.wrong("needs a client key")
	}
	pair, err := tls.LoadX509KeyPair(cert.value, key.value)
	if err != nil {
		return cert.wrong("and the client key are not a pair that can be read")
	}
	e.tls.Certificates = []tls.Certificate{pair}
	return nil
}
