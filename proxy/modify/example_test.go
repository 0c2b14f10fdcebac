package modify_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/ALRubinger/aileron/proxy/modify"
)

// A list applies its modifiers in order.
func ExampleRequests() {
	req, err := http.NewRequest(http.MethodGet, "https://api.tracker.example/v1/issues", nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Connection", "X-Nominated")
	req.Header.Set("X-Nominated", "1")
	req.Header.Set("Accept-Encoding", "gzip")

	steps := modify.Requests{modify.StripHopByHop{}, modify.RequestIdentity{}}
	fmt.Println(steps.ModifyRequest(req), req.Header)
	// Output: <nil> map[Accept-Encoding:[identity]]
}

// A response in which a credential could hide ends the list.
func ExampleResponses() {
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{
		"Content-Encoding": {"gzip"},
		"Alt-Svc":          {`h3=":443"`},
	}}
	steps := modify.Responses{modify.RejectOpaque{}, modify.StripAltSvc{}}
	err := steps.ModifyResponse(res)
	var rejected *modify.Error
	fmt.Println(errors.As(err, &rejected) && rejected.Kind == modify.ContentCoding, len(res.Header))
	// Output: true 2
}
