package judge_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/spec"
)

func TestAFormDoesNotNameAnotherMethod(t *testing.T) {
	t.Parallel()
	const form, parts = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
	part := func(head string) string { return "--x\r\n" + head + "\r\n\r\nDELETE\r\n--x--\r\n" }
	pad := strings.Repeat("+", 5000)
	for _, c := range []struct {
		kind, body string
		denied     bool
	}{
		{form, "a=b&method=x&payment_method=y&c=_method&method_=", true}, // conservative
		{form, "a=b&method=x&payment_method=y&c=_method&_method2=z&the._method=_", false},
		{form, "_method=DELETE", true},
		{form, "a=b&_method=DELETE", true},
		{form, "a=b&_method", true},
		{form, "a=b;_method=DELETE", true},
		{form, "%5f%6Dethod=DELETE", true},
		{form, "+_method=DELETE", true},
		{form, pad + "_method=DELETE", true},
		{form, ".method=DELETE", true},
		{form, "[_method]=DELETE", true},
		{form, "_method%00=DELETE", true},
		{form, "_method[]=DELETE", true},
		{form, "_METHOD=DELETE", true},
		{form, "%_method=DELETE", true},
		{form, `{"json":"by curl -d", "method": 1}`, false},
		{form + "; charset=utf-8", "_method=DELETE", true},
		{"Application/X-WWW-Form-Urlencoded", "_method=DELETE", true},
		{"", "_method=DELETE", true}, // Rack takes a POST without a type for a form
		{"application/json", `{"a":1}&_method=DELETE`, false},
		{"application/json", `{"_method":"DELETE"}`, true},
		{"application/json; charset=utf-8", "{\"a\":[{\"b\":\"}\\\"\"}],\"_method\"\n:\"DELETE\"}", true},
		{"application/vnd.api+json", `{"a":"_","\u005f\u006Dethod":"DELETE"}`, true},
		{"application/json", `{"_Method":"DELETE"}`, true},
		{"application/json", `{"a":"_method","method":1,"_methods":2,"b":{"_method":3},"_meth\nod":4,"c":["_method",5]}`,
			false},
		{"application/json", `[{"_method":"DELETE"}]`, false},
		{"application/json", `{"a":"\\","_method":"DELETE"}`, true},
		{"text/plain", "_method=DELETE", false},
		{parts, part(`Content-Disposition: form-data; name="_method"`), true},
		{parts, part(`content-disposition:form-data;name=_method`), true},
		{parts, part(`Content-Disposition: form-data; name = "_method"`), true},
		{parts, part("Content-Disposition: form-data;\r\n name=\"_method\""), true},
		{parts, part("Content-Disposition: form-data;\n\tname=\"_method\""), true},
		{parts, part("Content-Disposition: form-data; name*=UTF-8''%5Fmethod"), true},
		{parts, part(`Content-Disposition: form-data; name*0="_method"`), true},
		{parts, part(`Content-Disposition: form-data; filename="a"; name="_method"`), true},
		{parts, part(`Content-Disposition: form-data; x="` + strings.Repeat("x", 5000) + `"; name="_method"`), true},
		{parts, part(`Content-Disposition: form-data; name="method"`), false},
		{parts, part(`Content-Disposition: form-data; name="file"; filename="_method"`), false},
		{parts, part("Content-Disposition: form-data; name=\"file\"; filename=\"a.rb\"\r\n\r\nparams[:_method] name=_method"),
			false},
		{parts, "--x\rContent-Disposition: form-data; name=\"_method\"\r\rDELETE\r--x--", true},
	} {
		h := http.Header{}
		if c.kind != "" {
			h.Set("Content-Type", c.kind)
		}
		for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r },
			"byte by byte": iotest.OneByteReader, "with its end": iotest.DataErrReader} {
			body := judge.GuardForm(&spec.Operation{Method: "POST"}, h, io.NopCloser(wrap(strings.NewReader(c.body))))
			got, err := io.ReadAll(body)
			denied := errors.Is(err, judge.ErrOverride)
			if denied != c.denied || !denied && (err != nil || string(got) != c.body) {
				t.Errorf("%s %.80q, %s: %v, want a denial: %v", c.kind, c.body, name, err, c.denied)
			}
		}
	}
	packed := http.Header{"Content-Type": {form}, "Content-Encoding": {"gzip"}}
	if _, err := io.ReadAll(judge.GuardForm(&spec.Operation{}, packed, http.NoBody)); !errors.Is(err, judge.ErrOverride) {
		t.Errorf("a form that is packed: %v", err)
	}
}
