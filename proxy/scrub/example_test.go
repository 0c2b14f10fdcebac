package scrub_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/proxy/scrub"
)

// A response that echoes the token that it was sent, as it is and in base64.
func Example() {
	const token = "tok-5fc1d2ab-0123456789"
	set := scrub.NewSet([]scrub.Credential{{Secret: []byte(token)}})

	res := http.Response{
		Header: http.Header{"X-Echo": {"Bearer " + token}},
		Body: io.NopCloser(strings.NewReader(
			`{"raw":"` + token + `","base64":"` + base64.StdEncoding.EncodeToString([]byte(token)) + `"}`)),
	}
	hits := set.Header(res.Header)
	body := set.Reader(res.Body)
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Header.Get("X-Echo"))
	fmt.Println(string(text))
	fmt.Println(hits+body.Hits(), "hits")
	// Output:
	// Bearer ***********************
	// {"raw":"***********************","base64":"*******************************="}
	// 3 hits
}

// A part of a secret that is shorter than Window is no hit, so that a client cannot
// guess a secret piece by piece.
func ExampleSet_Text() {
	set := scrub.NewSet([]scrub.Credential{{Secret: []byte("tok-5fc1d2ab-0123456789")}})
	for _, text := range []string{"tok-5fc1d2ab-01", "tok-5fc1d2ab-012", "TOK-5FC1D2AB-012"} {
		redacted, hits := set.Text(text)
		fmt.Println(redacted, hits)
	}
	// Output:
	// tok-5fc1d2ab-01 0
	// **************** 1
	// **************** 1
}
