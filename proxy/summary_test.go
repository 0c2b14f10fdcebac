package proxy

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestASummaryIsRecordedOncePerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s summary[int]
		var recorded []int
		flush := func() { s.flush(func(n int) { recorded = append(recorded, n) }) }
		flush() // nothing has been collected
		for range 5 {
			s.add(flush, func(n *int) { *n++ })
			<-time.After(summaryPeriod / 2)
			synctest.Wait()
		}
		s.add(flush, func(n *int) { *n += 10 })
		flush()
		<-time.After(2 * summaryPeriod)
		if want := []int{2, 2, 11}; !slices.Equal(recorded, want) {
			t.Errorf("recorded %v, want %v", recorded, want)
		}
	})
}

func TestASummaryNamesTheFirstHosts(t *testing.T) {
	var h someHosts
	for _, host := range []string{"a", "", "a", "b"} {
		h.add(host)
	}
	if h.only() != "" || !slices.Equal(h.listed(), []string{"a", "b"}) {
		t.Errorf("listed %q, only %q", h.listed(), h.only())
	}
	for c := 'c'; c <= 'z'; c++ {
		h.add(string(c))
	}
	if len(h.listed()) != maxSummaryHosts || len(h) > maxSummaryHosts+1 {
		t.Errorf("%d hosts are kept, %d listed", len(h), len(h.listed()))
	}
	if h = nil; h.only() != "" {
		t.Error("no host is one")
	}
	if h.add("a"); h.only() != "a" {
		t.Errorf("the only host is %q", h.only())
	}
}
