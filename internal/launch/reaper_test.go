package launch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A sweep takes as long as a busy engine needs; only the pauses between two
// sweeps are counted.
func TestAReaperGoesOnAsLongAsItsEngineWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 5
		err := untilNothingIsLeft(func() (int, error) {
			<-time.After(reaperTime)
			left = max(left-1, 0)
			return left, nil
		})
		if err != nil || left != 0 {
			t.Errorf("it gave up with %d containers left: %v", left, err)
		}
	})
}

func TestAReaperGivesUpAnEngineThatDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, began := errors.New("docker: no daemon runs"), time.Now()
		if err := untilNothingIsLeft(func() (int, error) { return 0, gone }); !errors.Is(err, gone) {
			t.Errorf("untilNothingIsLeft = %v, want %v", err, gone)
		}
		if took := time.Since(began); took < reaperTime || took > reaperTime+sweepPause {
			t.Errorf("it gave up after %v, want %v", took, reaperTime)
		}
	})
}
