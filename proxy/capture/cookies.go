package capture

import (
	"net/http"
	"time"

	"github.com/google/martian/v3/har"
)

// requestCookies returns the cookies in redacted fields.
func requestCookies(fields []har.Header) []har.Cookie {
	cookies := []har.Cookie{}
	for _, f := range fields {
		if f.Name != "Cookie" {
			continue
		}
		list, _ := http.ParseCookie(f.Value)
		for _, c := range list {
			cookies = append(cookies, har.Cookie{Name: c.Name, Value: c.Value})
		}
	}
	return cookies
}

// responseCookies returns the cookies that redacted fields set.
func responseCookies(fields []har.Header) []har.Cookie {
	cookies := []har.Cookie{}
	for _, f := range fields {
		if f.Name != "Set-Cookie" {
			continue
		}
		c, err := http.ParseSetCookie(f.Value)
		if err != nil {
			continue
		}
		one := har.Cookie{Name: c.Name, Value: c.Value, Path: c.Path, Domain: c.Domain, HTTPOnly: c.HttpOnly,
			Secure: c.Secure}
		if !c.Expires.IsZero() {
			one.Expires8601 = c.Expires.UTC().Format(time.RFC3339)
		}
		cookies = append(cookies, one)
	}
	return cookies
}
