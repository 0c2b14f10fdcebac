package modify_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/ALRubinger/aileron/proxy/modify"
)

// The fields of one hop do not travel on.
func ExampleStripHopByHop() {
	req, err := http.NewRequest(http.MethodGet, "https://api.tracker.example/v1/issues", nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Connection", "X-Nominated")
	req.Header.Set("X-Nominated", "1")
	req.Header.Set("Accept", "text/html")

	fmt.Println(modify.StripHopByHop{}.ModifyRequest(req), req.Header)
	// Output: <nil> map[Accept:[text/html]]
}

// A response in which a credential could hide is an error.
func ExampleRejectOpaque() {
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Encoding": {"gzip"}}}
	err := modify.RejectOpaque{}.ModifyResponse(res)
	var rejected *modify.Error
	fmt.Println(errors.As(err, &rejected) && rejected.Kind == modify.ContentCoding)
	// Output: true
}
