package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

// The files that the page saves are the output of audit export.
func TestServeSavesWhatExportPrints(t *testing.T) {
	c := newRunner(t)
	c.write(filterRows(time.Now().Add(-time.Hour))...)
	ctx, stop := context.WithCancel(t.Context())
	out, to := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		a := cli.New(&console.Console{Stdout: to, Stderr: &errs}, &home.Dir{})
		ended <- Main(ctx, []string{"--home", c.Flag, "--json", "audit", "serve"}, a)
	}()
	var link struct{ URL string }
	must.Do(t, json.NewDecoder(out).Decode(&link))
	origin, token, _ := strings.Cut(link.URL, "/#")
	var key, cookie string
	ask := func(method, path, body string) string {
		t.Helper()
		r := must.Get(http.NewRequestWithContext(t.Context(), method, origin+path, strings.NewReader(body)))(t)
		r.Header.Set("Origin", origin)
		r.Header.Set("Aileron-Page-Key", key)
		r.Header.Set("Cookie", cookie)
		res := must.Get(http.DefaultTransport.RoundTrip(r))(t) //nolint:bodyclose // closed below
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
		}
		for _, set := range res.Cookies() {
			cookie = set.Name + "=" + set.Value
		}
		return string(text)
	}
	key = decode[struct{ Key string }](t, ask("POST", "/session", token)).Key
	for _, format := range []string{"jsonl", "csv", "har"} {
		saved := ask("GET", decode[struct{ Path string }](t,
			ask("GET", "/api/ticket?host=h1.example&format="+format, "")).Path, "")
		if want := c.ok("audit", "export", "--host", "h1.example", "--format", format); saved != want || len(saved) < 100 {
			t.Errorf("%s saves %.200q, want %.200q", format, saved, want)
		}
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("audit serve ends with %d: %s", code, errs.String())
	}
}

func TestServeRefusesAnAddressThatItCannotUse(t *testing.T) {
	c := newRunner(t)
	used := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer used.Close()
	for _, w := range []struct {
		address, want string
		code          int
	}{{used.Addr().String(), "address already in use", 1}, {"0.0.0.0:0", "not a loopback address", 2}} {
		if out, errs, code := c.run("audit", "serve", "--listen", w.address); code != w.code || out != "" ||
			!strings.Contains(errs, w.want) || !strings.Contains(errs, "--listen") {
			t.Errorf("--listen %s ends with %d: %q %q; want %d", w.address, code, out, errs, w.code)
		}
	}
}
