package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
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

// RefusedError is returned for the error response of an authorization server (RFC 6749 section 5.2). It holds only a
// code that an RFC defines: any other text of the response may repeat a secret of the request, in any encoding.
type RefusedError struct{ Code string }

func (e *RefusedError) Error() string { return "it refused with " + e.Code }

// unknownCode stands for every code that is not known.
const unknownCode = "an error of its own"

// knownCodes are those of RFC 6749, RFC 6750, RFC 8628, RFC 7009, RFC 8707, RFC 9449 and OpenID Connect.
var knownCodes = strings.Fields(`
	access_denied account_selection_required authorization_pending consent_required expired_token
	insufficient_scope interaction_required invalid_client invalid_dpop_proof invalid_grant invalid_request
	invalid_request_object invalid_request_uri invalid_scope invalid_target invalid_token login_required
	registration_not_supported request_not_supported request_uri_not_supported server_error slow_down
	temporarily_unavailable unauthorized_client unmet_authentication_requirements unsupported_grant_type
	unsupported_response_type unsupported_token_type use_dpop_nonce`)

// knownCode returns code if it is known, and [unknownCode] otherwise.
func knownCode(code string) string {
	if slices.Contains(knownCodes, code) {
		return code
	}
	return unknownCode
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

	refresh string // of an answer, even of one that is refused for something else in it
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
		return nil, fmt.Errorf("it answered with %d and something else than JSON", res.StatusCode)
	case decoder.Decode(&fields) != nil || decoder.More():
		return nil, fmt.Errorf("it answered with %d and JSON that cannot be read", res.StatusCode)
	}
	code, _ := fields["error"].(string)
	switch e := (&RefusedError{Code: knownCode(code)}); {
	case code != "" && e.isWait(): // package oauth2 asks again
		return answerWith(r, res.StatusCode, map[string]string{"error": e.Code})
	case code != "":
		return nil, e
	case res.StatusCode/100 != 2:
		return nil, fmt.Errorf("it answered with %d", res.StatusCode)
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

// isPlain reports whether text is printable ASCII.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// tokenFields returns what package oauth2 has to know of an answer with a token (RFC 6749 section 5.1).
func (a *answers) tokenFields(fields map[string]any) (any, error) {
	kept := map[string]string{"token_type": "Bearer"}
	if text, _ := fields["refresh_token"].(string); isToken(text, maxRefresh) {
		a.refresh = text
	}
	if kind, _ := fields["token_type"].(string); !strings.EqualFold(kind, "Bearer") {
		return nil, errors.New("it sent a token of another type than Bearer, which aileron cannot use")
	}
	for _, name := range []string{"access_token", "refresh_token"} {
		text, isText := fields[name].(string)
		if name == "refresh_token" && (fields[name] == nil || isText && text == "") {
			continue
		}
		most := cmp.Or(map[string]int{"refresh_token": maxRefresh}[name], vault.MaxSecret)
		if !isToken(text, most) {
			return nil, fmt.Errorf("it sent no %s that can be used: it must be %d to %d printable characters without spaces",
				strings.ReplaceAll(name, "_", " "), vault.MinSecret, most)
		}
		kept[name] = text
	}
	a.life = life(fields["expires_in"])
	a.scope, _ = fields["scope"].(string)
	return kept, nil
}

// maxRefresh bounds a refresh token, in bytes: it is sealed with all else of a grant, as JSON, which may double it.
const maxRefresh = 4 << 10

// isToken reports whether text can be a token of at most most bytes.
func isToken(text string, most int) bool {
	_, err := vault.NewSecret([]byte(text))
	return err == nil && len(text) <= most && !strings.ContainsAny(text, " \r\n")
}

// life returns the time of expires_in, which some services send as text; 0: there is none that can be true.
func life(value any) time.Duration {
	text := fmt.Sprint(value) // a json.Number, or text
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 1 && seconds <= maxLife.Seconds()) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// deviceFields returns what package oauth2 has to know of an answer with a device code.
func deviceFields(fields map[string]any) (any, error) {
	kept := map[string]any{}
	for _, name := range []string{"device_code", "user_code"} {
		text, _ := fields[name].(string)
		if text == "" || len(text) > 4096 || !isPlain(text) {
			return nil, fmt.Errorf("it sent no %s that can be used", strings.ReplaceAll(name, "_", " "))
		}
		kept[name] = text
	}
	page, _ := fields["verification_uri"].(string)
	if page == "" {
		page, _ = fields["verification_url"].(string) // before the RFC
	}
	if u, err := url.Parse(page); err != nil || u.Scheme != "https" || u.Host == "" ||
		len(page) > 2048 || !isPlain(page) {
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
		err = &RefusedError{Code: knownCode(r.ErrorCode)}
	}
	return fmt.Errorf("%s: %w", host, err)
}
