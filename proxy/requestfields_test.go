package proxy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// unaccepted are fields that servers, frameworks and other proxies grant,
// route or identify by, and spellings that some of them fold into such.
var unaccepted = strings.Fields(`
	Sudo X-Sudo From Impersonate-User Impersonate-Group Impersonate-Uid Impersonate-Extra-Scopes X-Impersonate-User
	X-On-Behalf-Of Remote-User X-Remote-User
	X-Remote-Group X-Authenticated-User X-WebAuth-User X-Auth-Request-Email X-User-Id X-Consumer-Username
	X-Goog-Authenticated-User-Email X-Ms-Client-Principal
	Cookie Cookie2 X-Api-Key X-Auth-Token Private-Token X-Amz-Security-Token X-Goog-Iap-Jwt-Assertion Dpop Signature
	Signature-Input X-Csrf-Token
	Client-Cert Client-Cert-Chain X-Client-Cert X-SSL-Client-Cert X-SSL-Client-Verify X-SSL-Client-S-DN SSL-Client-Cert
	X-Forwarded-Client-Cert X-ARR-ClientCert
	X-Amzn-Mtls-Clientcert X-Tls-Client-Subject
	Forwarded Via X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Server X-Forwarded-User X-Forwarded
	X-Real-Ip Client-Ip X-Client-Ip True-Client-Ip
	X-Cluster-Client-Ip Cf-Connecting-Ip Fastly-Client-Ip X-Originating-Ip X-Remote-Ip X-Remote-Addr X-Azure-Clientip
	X-Envoy-External-Address CDN-Loop
	X-Http-Method-Override X-Http-Method X-Method-Override X-HTTP-Host-Override X-Host X-Original-Host X-Original-Url
	X-Original-Uri X-Rewrite-Url X-Override-Url
	X-Accel-Redirect X-Sendfile X-Unix-Socket X-Upstream-Https-Proxy X-Upstream X-Backend-Host X-Middleware-Subrequest
	Destination Depth Overwrite Lock-Token If
	X-Aileron-Session X-Aileron-Upstream Aileron-Token
	Origin Referer Baggage X-Requested-With Access-Control-Request-Method A-IM Available-Dictionary Dictionary-Id
	Early-Data Max-Forwards Alt-Used
	Range If-Range Idempotency-Key X-Idempotency-Key Grpc-Timeout Grpc-Encoding Grpc-Metadata-User Sec-Websocket-Key
	Sec-Websocket-Protocol Sec-Token-Binding
	X_Declared X_Forwarded_Host X_Real_Ip Authorization_ Content_Type Accept_ User-Agent_ Acme_One X-Declared-Too X-Declare
	Acme Acme- Session-Id Sessionid
	Acme-Token Acme-Client-Ip Acme-Authorization Acme-Impersonate-User Acme-Method-Override`)

var accepted = strings.Fields(`
	Accept Accept-Charset Accept-Language Prefer Content-Type Content-Encoding Content-Language Content-Disposition
	Content-Range Content-Digest Repr-Digest Digest
	Content-Md5 If-Match If-None-Match If-Modified-Since If-Unmodified-Since Last-Event-Id Cache-Control Pragma Traceparent
	Tracestate User-Agent Date Sec-Ch-Ua
	Sec-Ch-Ua-Mobile Sec-Ch-Ua-Platform Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User
	X-Declared Acme-One Acme-Two_three Session_id`)

func TestACredentialedOperationTakesAcceptedAndDeclaredFieldsOnly(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(version, func(t *testing.T) {
			w := newWorldOf(t, true, hello)
			if version == "HTTP/2.0" {
				w.client = w.h2client()
			}
			var fields []string
			for _, name := range slices.Concat(accepted, unaccepted) {
				fields = append(fields, name, "CANARY")
			}
			res, body := w.do("POST", "https://api.good.example/v1/items", "x", fields...)
			if res.StatusCode != 200 || res.Proto != version {
				t.Fatalf("got %s %d %s", res.Proto, res.StatusCode, body)
			}
			got := slices.Sorted(maps.Keys(w.requests()[0].Header))
			want := append(slices.Clone(accepted), "Authorization", "Accept-Encoding", "Content-Length")
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the origin got the fields\n%q, want\n%q", got, want)
			}
			w.rowsName(plainNames(unaccepted))
		})
	}
}

// rowsName fails the test unless both rows of the last request name the
// dropped fields, as many as they may, and no value.
func (w *world) rowsName(dropped []string) {
	w.t.Helper()
	rows := w.rows()
	for _, r := range rows[len(rows)-2:] {
		var got []string
		list, _ := r.Fields["dropped_headers"].([]any)
		for _, name := range list {
			got = append(got, fmt.Sprint(name))
		}
		want := dropped[:min(len(dropped), maxDroppedFields)]
		omitted, _ := r.Fields["dropped_headers_omitted"].(float64)
		if !slices.Equal(got, want) || int(omitted) != len(dropped)-len(want) {
			w.t.Errorf("the row of %s names %q and omits %v, want %q and %d", r.Event, got, omitted, want,
				len(dropped)-len(want))
		}
		if strings.Contains(fmt.Sprint(r.Fields), "CANARY") {
			w.t.Errorf("the row of %s holds a value: %v", r.Event, r.Fields)
		}
	}
}

func TestNoSpellingOfAFieldPassesForAnother(t *testing.T) {
	w := newWorld(t, hello)
	head := "POST /v1/items HTTP/1.1\r\nHost: api.good.example\r\nConnection: close, x-nominated\r\nContent-Length: " +
		"0\r\naCCEPT: text/a\r\nACCEPT: text/b\r\nx-DECLARED: yes\r\n" +
		"SUDO: CANARY\r\nsudo: CANARY\r\nSuDo: CANARY\r\nx-forwarded-host: CANARY\r\nX-FORWARDED-HOST: " +
		"CANARY\r\nx.forwarded.host: CANARY\r\n" +
		"X-Nominated: CANARY\r\nauthorization: Bearer CANARY\r\nAUTHORIZATION: Bearer CANARY\r\n" + strings.Repeat("n", 200) +
		": CANARY\r\n\r\n"
	if got := w.raw("api.good.example", head); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Fatalf("got %q", got)
	}
	h := w.requests()[0].Header
	if !slices.Equal(h["Accept"], []string{"text/a", "text/b"}) || h.Get("X-Declared") != "yes" ||
		strings.Contains(fmt.Sprint(h), "CANARY") {
		t.Errorf("the origin got %v", h)
	}
	w.rowsName([]string{strings.Repeat("n", maxDroppedName), "sudo", "x-forwarded-host", "x-nominated",
		"x.forwarded.host"})
}

func TestTrailersOfARequestAreNotSent(t *testing.T) {
	w := newWorld(t, hello)
	got := w.raw("api.good.example",
		"POST /v1/items HTTP/1.1\r\nHost: api.good.example\r\nConnection: close\r\nTransfer-Encoding: "+
			"chunked\r\nTrailer: X-Declared, Sudo\r\n\r\n"+
			"1\r\nx\r\n0\r\nX-Declared: CANARY\r\nSudo: CANARY\r\nX-Real-Ip: CANARY\r\n\r\n")
	seen := w.requests()
	if len(seen) == 0 { // refusing them is as good
		return
	}
	if !strings.HasPrefix(got, "HTTP/1.1 200") || strings.Contains(fmt.Sprint(seen[0].Header, seen[0].Trailer), "CANARY") {
		t.Errorf("got %.100q, and the origin got %v and the trailers %v", got, seen[0].Header, seen[0].Trailer)
	}
}

func TestAWebSocketsHandshakeTakesNoOtherFields(t *testing.T) {
	w := newWorld(t, live)
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	_, err := io.WriteString(conn, strings.Replace(handshake, "\r\n\r\n",
		"\r\nOrigin: CANARY\r\nSudo: CANARY\r\nCookie: CANARY\r\nAcme-One: 1\r\nUser-Agent: u\r\n\r\n", 1))
	must.Do(t, err)
	buf := make([]byte, 12)
	must.Get(io.ReadFull(conn, buf))(t)
	if string(buf) != "HTTP/1.1 101" {
		t.Fatalf("got %q", buf)
	}
	h := w.requests()[0].Header
	want := []string{"Accept-Encoding", "Acme-One", "Authorization", "Connection", "Sec-Websocket-Key",
		"Sec-Websocket-Protocol", "Sec-Websocket-Version", "Upgrade", "User-Agent"}
	if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, want) || strings.Contains(fmt.Sprint(h), "CANARY") {
		t.Errorf("the origin got %v, want the fields %q", h, want)
	}
	_ = conn.Close()
	w.rowNames("origin", "cookie", "sudo")
}

// rowNames waits for an outcome row and compares its dropped fields, in any
// order.
func (w *world) rowNames(names ...string) {
	w.t.Helper()
	started := w.rows()[0]
	list, _ := started.Fields["dropped_headers"].([]any)
	slices.Sort(names)
	if started.Event != audit.EventProxyStarted || fmt.Sprint(list) != fmt.Sprint(names) {
		w.t.Errorf("the row of %s names %v, want %q", started.Event, list, names)
	}
}

func TestGRPCMetadataIsDeclaredLikeOtherFields(t *testing.T) {
	w := newWorldOf(t, true, hello)
	w.client = w.h2client()
	w.do("POST", "https://api.good.example/v1/items", "x", "Content-Type", "application/grpc+proto", "Te", "trailers",
		"Grpc-Timeout", "1S", "Grpc-Encoding", "identity",
		"Grpc-Accept-Encoding", "gzip", "Grpc-Previous-Rpc-Attempts", "1", "Acme-Bin", "AA", "Grpc-Tags-Bin", "CANARY",
		"X-User-Id", "CANARY", "Grpc-Metadata-Sudo", "CANARY")
	h := w.requests()[0].Header
	want := []string{"Accept-Encoding", "Acme-Bin", "Authorization", "Content-Length", "Content-Type",
		"Grpc-Accept-Encoding", "Grpc-Encoding", "Grpc-Previous-Rpc-Attempts",
		"Grpc-Timeout", "Te", "User-Agent"}
	got := slices.Sorted(maps.Keys(h))
	if !slices.Equal(got, want) || h.Get("Grpc-Accept-Encoding") != "identity" || strings.Contains(fmt.Sprint(h),
		"CANARY") {
		t.Errorf("the origin got %v, want the fields %q", h, want)
	}
	w.rowNames("grpc-metadata-sudo", "grpc-tags-bin", "x-user-id")
}
