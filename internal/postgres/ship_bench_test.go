package postgres_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkShip sends 50,000 rows to a database of this host. us-cpu/row is what this process uses for a row: reading
// it, checking its hash and writing it to the connection.
func BenchmarkShip(b *testing.B) {
	home := b.TempDir()
	for range 10 {
		write(b, home, 5000, true)
	}
	rows := int64(0)
	var took, cpu time.Duration
	for b.Loop() {
		b.StopTimer()
		name := database(b)
		s := shipper(b, home, "shipper", name)
		before, began := usage(b), time.Now()
		b.StartTimer()
		sent, err := s.Once(b.Context())
		if err != nil || sent.Rows < 50_000 {
			b.Fatalf("Once = %+v, %v", sent, err)
		}
		rows += sent.Rows
		took, cpu = took+time.Since(began), cpu+usage(b)-before
	}
	b.ReportMetric(float64(rows)/took.Seconds(), "rows/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(rows), "us-cpu/row")
	b.ReportMetric(0, "ns/op")
}

// usage returns the processor time of this process.
func usage(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	must.Do(tb, os.NewSyscallError("getrusage", syscall.Getrusage(syscall.RUSAGE_SELF, &u)))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
