package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A sweep takes as long as a busy engine needs; only the pauses between two
// sweeps are counted.
func TestAWardenGoesOnAsLongAsItsEngineWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 5
		err := untilNothingIsLeft(func() (int, error) {
			time.Sleep(wardenTime)
			left = max(left-1, 0)
			return left, nil
		})
		if err != nil || left != 0 {
			t.Errorf("it gave up with %d containers left: %v", left, err)
		}
	})
}

func TestAWardenGivesUpAnEngineThatDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, began := errors.New("docker: no daemon runs"), time.Now()
		if err := untilNothingIsLeft(func() (int, error) { return 0, gone }); !errors.Is(err, gone) {
			t.Errorf("untilNothingIsLeft = %v, want %v", err, gone)
		}
		if took := time.Since(began); took < wardenTime || took > wardenTime+sweepPause {
			t.Errorf("it gave up after %v, want %v", took, wardenTime)
		}
	})
}
