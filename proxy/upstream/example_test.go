package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"

	"github.com/ALRubinger/aileron/proxy/upstream"
)

func ExampleClient_RoundTrip() {
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello from "+r.Host)
	}))
	defer origin.Close()
	client, err := upstream.New(upstream.Options{
		Roots:   origin.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Resolve: map[string]netip.AddrPort{"example.com:443": netip.MustParseAddrPort(origin.Listener.Addr().String())},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	key := client.Key("bearer", "a token that the sandbox never sees")
	client.Keep(key)
	res, err := client.RoundTrip(&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "https", Host: "example.com:443", Path: "/"},
		Host:   "example.com",
		Header: http.Header{"Authorization": {"Bearer a token that the sandbox never sees"}},
	}, upstream.Route{Key: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, string(body))
	// Output: 200 hello from example.com
}

func ExampleClient_Dial() {
	client, err := upstream.New(upstream.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Dial(context.Background(), "169.254.169.254:80")
	fmt.Println(err)
	// Output: reach 169.254.169.254:80: the name leads to no address that may be reached (metadata)
}
