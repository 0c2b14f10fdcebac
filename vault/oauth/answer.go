package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/ALRubinger/aileron/vault"
)

const (
	// maxAnswer bounds the answer of an authorization server, in bytes.
	maxAnswer = 64 << 10
	// usualLife is that of a token which can be renewed, and whose answer has no expires_in that can be true.
	usualLife = time.Hour
	// maxLife is the longest life that is believed.
	maxLife = 400 * 24 * time.Hour
)

// RefusedError is returned where an authorization server answered with an error (RFC 6749 section 5.2).
type RefusedError struct {
	Code        string // printable ASCII
	Description string // of the server, for a person; "" if it has something secret
}

func (e *RefusedError) Error() string {
	if e.Description != "" {
		return fmt.Sprintf("it refused with %s (%s)", e.Code, e.Description)
	}
	return "it refused with " + e.Code
}

// isFinal reports whether the same request will be refused again: only another login helps.
func (e *RefusedError) isFinal() bool {
	switch e.Code {
	case "invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
		"access_denied":
		return true
	}
	return false
}

// isWait reports whether a device's person has not decided yet (RFC 8628 section 3.5).
func (e *RefusedError) isWait() bool {
	return e.Code == "authorization_pending" || e.Code == "slow_down"
}

// answers is a transport that reads the answers of an authorization server strictly. What it returns to package oauth2
// is what that has to know, and nothing else.
type answers struct {
	transport http.RoundTripper
	device    bool // the answer is that of RFC 8628 section 3.2

	life  time.Duration // of the last token; 0: unknown
	scope string
}

// in returns a context with which package oauth2 asks through a.
func (a *answers) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: a})
}

// RoundTrip implements http.RoundTripper. It returns a [RefusedError] for a refusal, and no response that redirects.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Accept-Encoding", "identity")
	res, err := a.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	_ = res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	fields := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	switch {
	case err != nil:
		return nil, errors.New("its answer broke off")
	case res.StatusCode/100 == 3:
		return nil, fmt.Errorf("it answered with a redirect (%d), which is not followed", res.StatusCode)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("its answer is longer than %d KiB", maxAnswer>>10)
	case res.Header.Get("Content-Encoding") != "":
		return nil, errors.New("its answer is compressed, which was not asked for")
	case kind != "application/json" && !strings.HasSuffix(kind, "+json"):
		return nil, fmt.Errorf("it answered with %d and %.60q instead of JSON", res.StatusCode, kind)
	case decoder.Decode(&fields) != nil || decoder.More():
		return nil, fmt.Errorf("it answered with %d and JSON that cannot be read", res.StatusCode)
	}
	code, _ := fields["error"].(string)
	if res.StatusCode/100 != 2 && code == "" {
		return nil, fmt.Errorf("it answered with %d", res.StatusCode)
	}
	if code != "" {
		return a.refused(r, res, code, fields)
	}
	var kept any
	if a.device {
		kept, err = deviceFields(fields)
	} else {
		kept, err = a.tokenFields(fields)
	}
	if err != nil {
		return nil, err
	}
	return answerWith(r, http.StatusOK, kept)
}

// refused returns the error of a refusal. For that of a device whose person has not decided yet it returns the
// response: package oauth2 asks again then.
func (a *answers) refused(r *http.Request, res *http.Response, code string, fields map[string]any,
) (*http.Response, error) {
	description, _ := fields["error_description"].(string)
	e := &RefusedError{Code: printable(code, 64), Description: printable(description, 200)}
	if e.isWait() {
		return answerWith(r, res.StatusCode, map[string]string{"error": e.Code})
	}
	if form, err := sentForm(r); err != nil || repeats(description, form) {
		e.Description = ""
	}
	return nil, e
}

// sentForm returns what was sent.
func sentForm(r *http.Request) (url.Values, error) {
	if r.GetBody == nil {
		return nil, errors.New("the body is not known")
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	return url.ParseQuery(string(data))
}

// repeats reports whether text has a value that was sent.
func repeats(text string, form url.Values) bool {
	for name, values := range form {
		for _, value := range values {
			if name != "grant_type" && name != "scope" && len(value) >= vault.MinSecret && strings.Contains(text, value) {
				return true
			}
		}
	}
	return false
}

// printable returns the beginning of a server's text, with what is not printable ASCII replaced.
func printable(text string, most int) string {
	text = text[:min(len(text), most)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// tokenFields returns what package oauth2 has to know of an answer with a token (RFC 6749 section 5.1).
func (a *answers) tokenFields(fields map[string]any) (any, error) {
	kept := map[string]string{"token_type": "Bearer"}
	if kind, _ := fields["token_type"].(string); !strings.EqualFold(kind, "Bearer") {
		return nil, fmt.Errorf("it sent a token of the type %q, and aileron can use Bearer alone", printable(kind, 40))
	}
	for _, name := range []string{"access_token", "refresh_token"} {
		text, isText := fields[name].(string)
		if name == "refresh_token" && (fields[name] == nil || isText && text == "") {
			continue
		}
		if _, err := vault.NewSecret([]byte(text)); err != nil || !isText || strings.ContainsAny(text, " \r\n") {
			return nil, fmt.Errorf("it sent no %s that can be used: it must be %d to %d printable characters without spaces",
				strings.ReplaceAll(name, "_", " "), vault.MinSecret, vault.MaxSecret)
		}
		kept[name] = text
	}
	a.life = life(fields["expires_in"])
	a.scope, _ = fields["scope"].(string)
	return kept, nil
}

// life returns the time of expires_in, which some services send as text; 0: there is none that can be true.
func life(value any) time.Duration {
	text := fmt.Sprint(value) // a json.Number, or text
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds <= maxLife.Seconds()) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// deviceFields returns what package oauth2 has to know of an answer with a device code.
func deviceFields(fields map[string]any) (any, error) {
	kept := map[string]any{}
	for _, name := range []string{"device_code", "user_code"} {
		text, _ := fields[name].(string)
		if text == "" || len(text) > 4096 || printable(text, len(text)) != text {
			return nil, fmt.Errorf("it sent no %s that can be used", strings.ReplaceAll(name, "_", " "))
		}
		kept[name] = text
	}
	page, _ := fields["verification_uri"].(string)
	if page == "" {
		page, _ = fields["verification_url"].(string) // before the RFC
	}
	if u, err := url.Parse(page); err != nil || u.Scheme != "https" || u.Host == "" || printable(page, 2048) != page {
		return nil, errors.New("it sent no https page on which the code is to be entered")
	}
	kept["verification_uri"] = page
	if interval := life(fields["interval"]); interval > 0 {
		kept["interval"] = int(min(interval, time.Minute).Seconds())
	}
	return kept, nil
}

// answerWith returns a response of JSON.
func answerWith(r *http.Request, status int, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(data)),
		Body: io.NopCloser(bytes.NewReader(data))}, nil
}

// explain returns the error of a request to an authorization server, with its host.
func explain(ctx context.Context, host string, err error) error {
	if cause := new(url.Error); errors.As(err, &cause) {
		err = cause.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.New("there was no answer in time")
	}
	if r := new(oauth2.RetrieveError); errors.As(err, &r) { // which quotes the answer
		err = &RefusedError{Code: printable(r.ErrorCode, 64)}
	}
	return fmt.Errorf("%s: %w", host, err)
}
