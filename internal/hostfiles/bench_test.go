package hostfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkTake looks at projects of many small files, fifty to a directory.
func BenchmarkTake(b *testing.B) {
	for _, n := range []int{0, 50_000, 200_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			for i := range n {
				in := filepath.Join(dir, fmt.Sprint("module", i/1000), fmt.Sprint("package", i/50))
				if i%50 == 0 {
					must.Do(b, os.MkdirAll(in, 0o700))
				}
				must.Do(b, os.WriteFile(filepath.Join(in, fmt.Sprintf("source_%d.go", i)), nil, 0o600))
			}
			var before, after unix.Rusage
			must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &before))
			b.ReportAllocs()
			for b.Loop() {
				if s := Take(b.Context(), dir); s.Incomplete {
					b.Fatal("incomplete")
				}
			}
			must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &after))
			b.ReportMetric(float64(after.Utime.Nano()-before.Utime.Nano())/1e6/float64(b.N), "user-ms/op")
			b.ReportMetric(float64(after.Stime.Nano()-before.Stime.Nano())/1e6/float64(b.N), "sys-ms/op")
		})
	}
}
