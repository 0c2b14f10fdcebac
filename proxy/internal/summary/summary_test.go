package summary

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestASummaryIsRecordedOncePerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Summary[int]
		var recorded []int
		flush := func() { s.Flush(func(n int) { recorded = append(recorded, n) }) }
		flush() // nothing has been collected
		for range 5 {
			s.Add(flush, func(n *int) { *n++ })
			<-time.After(period / 2)
			synctest.Wait()
		}
		s.Add(flush, func(n *int) { *n += 10 })
		flush()
		<-time.After(2 * period)
		if want := []int{2, 2, 11}; !slices.Equal(recorded, want) {
			t.Errorf("recorded %v, want %v", recorded, want)
		}
	})
}

func TestASummaryNamesTheFirstHosts(t *testing.T) {
	var h Hosts
	for _, host := range []string{"a", "", "a", "b"} {
		h.Add(host)
	}
	if h.Only() != "" || !slices.Equal(h.Listed(), []string{"a", "b"}) {
		t.Errorf("listed %q, only %q", h.Listed(), h.Only())
	}
	for c := 'c'; c <= 'z'; c++ {
		h.Add(string(c))
	}
	if len(h.Listed()) != maxHosts || len(h) > maxHosts+1 {
		t.Errorf("%d hosts are kept, %d listed", len(h), len(h.Listed()))
	}
	if h = nil; h.Only() != "" {
		t.Error("no host is one")
	}
	if h.Add("a"); h.Only() != "a" {
		t.Errorf("the only host is %q", h.Only())
	}
}
