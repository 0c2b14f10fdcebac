package session

import (
	"context"
	"testing"
)

func TestAStopRequestEndsItsContexts(t *testing.T) {
	r := NewStopRequest()
	before, cancel := r.WithStop(t.Context())
	defer cancel()
	if r.Requested() || before.Err() != nil {
		t.Error("it is requested before Request")
	}
	r.Request()
	r.Request()
	after, cancel := r.WithStop(t.Context())
	defer cancel()
	for _, ctx := range []context.Context{before, after} {
		<-ctx.Done()
	}
	<-r.Done()
	if !r.Requested() {
		t.Error("it is not requested after Request")
	}
}
