package audit

import (
	"context"
	"sync"
	"testing"
)

// killedWriter starts a process that writes rows, kills it after n of them, and returns the ids of those that were
// committed.
func killedWriter(t *testing.T, path string, n int) (ids []string) {
	t.Helper()
	cmd, out := startWriter(t, path, "AUDIT_HELPER_ENDLESS=1")
	for out.Scan() {
		if id, ok := committedID(out.Text()); ok {
			if ids = append(ids, id); len(ids) == n {
				_ = cmd.Process.Kill()
			}
		}
	}
	_ = cmd.Wait()
	return ids
}

func committedID(line string) (id string, ok bool) {
	if len(line) < 4 || line[:4] != "row " {
		return "", false
	}
	return line[4:], true
}

// A person who follows the log sees the last rows of a killed session although nothing else opens the log.
func TestFollowShowsTheLastRowsOfAKilledSession(t *testing.T) {
	path := history(t, t.TempDir(), "before", 3)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	rows := make(chan Row)
	var following sync.WaitGroup
	following.Go(func() {
		defer close(rows)
		show := func(r Row) error {
			select {
			case rows <- r:
			case <-ctx.Done():
			}
			return nil
		}
		if err := Follow(ctx, path, Filter{}, show, nil); err != nil {
			t.Error(err)
		}
	})
	killed := make(chan []string, 1)
	go func() { killed <- killedWriter(t, path, 200) }()
	shown := map[string]int{}
	var want []string
	for done := false; !done; {
		select {
		case want = <-killed:
		case r, ok := <-rows:
			if shown[r.ID]++; !ok {
				t.Fatalf("%d of %d rows were shown", len(shown), len(want))
			}
		}
		done = want != nil
		for _, id := range want {
			done = done && shown[id] > 0
		}
	}
	stop()
	for range rows { // until it ends
	}
	following.Wait()
	for _, id := range want {
		if shown[id] != 1 {
			t.Errorf("row %s was shown %d times", id, shown[id])
		}
	}
}

// Several readers that find the journal of a killed session fold it at the same time: each finds all of its rows, and
// no row is there twice.
func TestReadersThatFoldTogetherFindEachRowOnce(t *testing.T) {
	path := history(t, t.TempDir(), "before", 3)
	for range 3 {
		ids := killedWriter(t, path, 300)
		var reading sync.WaitGroup
		for range 4 {
			reading.Go(func() {
				l, err := OpenReader(path)
				if err != nil {
					t.Error(err)
					return
				}
				defer l.Close()
				rows, err := l.List(t.Context(), Filter{})
				found := map[string]int{}
				for _, r := range rows {
					found[r.ID]++
				}
				missing := 0
				for _, id := range ids {
					if found[id] != 1 {
						missing++
					}
				}
				if err != nil || missing > 0 || len(found) != len(rows) {
					t.Errorf("%d of %d rows are missing, %d are there twice; %d could not be folded; %v",
						missing, len(ids), len(rows)-len(found), l.Unfolded(), err)
				}
			})
		}
		reading.Wait()
	}
	if _, report := all(t, path); !report.OK {
		t.Errorf("Verify = %+v", report)
	}
}
