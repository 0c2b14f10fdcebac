// Package otlp exports the rows of a session's audit log to a collector, by OTLP over HTTP with protobufs.
//
// [FromEnvironment] reads the variables of OpenTelemetry, and [Open] returns an [Exporter] for the result:
//
//	to, err := otlp.FromEnvironment(os.Getenv)
//	if to.Enabled() {
//		exporter := otlp.Open(to, otlp.Options{Session: id, Warn: warn})
//		defer exporter.Close()
//	}
//
// [Exporter.Add] takes each row that was committed. A request is a span, which begins with the request and ends with
// its outcome, and has an event for its intent; any other row is a log record. The keys of both are the columns of a
// row, and fields.NAME: what is in no row is in no export.
//
// Add never waits. What the queue has no room for, and what the collector does not accept in time, is dropped and
// counted: the audit log has all of it.
//
// The spans are made by the SDK of OpenTelemetry. Its exporters over HTTP are not used: they link the whole of gRPC,
// take proxies from the environment, follow redirects with the credential of the collector, and log a header that
// they cannot parse.
package otlp

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

const (
	maxQueue      = 8192    // rows that wait
	maxQueueBytes = 8 << 20 // and about how many bytes they have
	maxBatch      = 512     // rows of a request to the collector
	maxBatchBytes = 1 << 20
	batchDelay    = time.Second // how long a row waits for others
	// endBound is how long Close waits for the collector.
	endBound = 2 * time.Second
)

// Options configure an [Exporter].
type Options struct {
	Session string // its id
	Version string // of aileron
	// Warn prints a line for the user. It must not block.
	Warn func(string)

	endBound time.Duration // in tests; 0: endBound
}

// item is a row that waits. Its strings are immutable.
type item struct {
	row    audit.Row
	fields string // JSON
}

func (i item) size() int64 { return int64(len(i.fields) + len(i.row.Path) + len(i.row.Host) + 512) }

// Exporter sends rows to a collector until it is closed.
type Exporter struct {
	warn    func(string)
	bound   time.Duration // see endBound
	where   string
	queue   chan item
	bytes   atomic.Int64 // in queue
	dropped atomic.Int64
	closing chan struct{}
	cut     context.CancelFunc // ends a request under way
	ended   sync.WaitGroup
	batch   *batch
	warned  bool  // owned by run, and by Close after it
	cause   error // why rows were dropped last
}

// Open starts to export to what t describes. The caller must call Close.
func Open(t Target, o Options) *Exporter {
	ctx, cut := context.WithCancel(context.Background())
	x := &Exporter{
		warn: o.Warn, bound: cmp.Or(o.endBound, endBound), where: t.String(),
		queue: make(chan item, maxQueue), closing: make(chan struct{}), cut: cut,
	}
	x.batch = newBatch(t, o, x.closing)
	x.ended.Go(func() { x.run(ctx) })
	return x
}

// Add takes a row that was committed, with its fields as JSON. It does not wait, and keeps nothing of the row's maps.
func (x *Exporter) Add(r audit.Row, fields string) {
	it := item{r, fields}
	if x.bytes.Add(it.size()) <= maxQueueBytes {
		select {
		case x.queue <- it:
			return
		default:
		}
	}
	x.bytes.Add(-it.size())
	x.dropped.Add(1)
}

// Close sends what waits, for at most two seconds, and reports how many rows were not exported. No row may be added any
// more.
func (x *Exporter) Close() {
	if x == nil {
		return
	}
	close(x.closing)
	end := time.AfterFunc(x.bound, x.cut)
	x.ended.Wait()
	end.Stop()
	x.cut()
	x.batch.close()
	if n := x.dropped.Load(); n > 0 {
		text := fmt.Sprintf("%d rows of the audit log were not exported to %s", n, x.where)
		if n == 1 {
			text = "1 row of the audit log was not exported to " + x.where
		}
		if !x.warned && x.cause != nil {
			text += ": " + x.cause.Error()
		}
		x.warn(text + "; the log has them")
	}
}

// run sends the rows of the queue in batches.
func (x *Exporter) run(ctx context.Context) {
	for {
		select {
		case it := <-x.queue:
			x.take(it)
		case <-x.closing:
			x.drain(ctx)
			return
		}
		x.fill()
		x.flush(ctx)
	}
}

// take moves a row from the queue to the batch.
func (x *Exporter) take(it item) {
	x.bytes.Add(-it.size())
	x.batch.add(it)
}

// fill adds rows to the batch until it is full, or its first row has waited long enough.
func (x *Exporter) fill() {
	due := time.NewTimer(batchDelay)
	defer due.Stop()
	for !x.batch.full() {
		select {
		case it := <-x.queue:
			x.take(it)
		case <-due.C:
			return
		case <-x.closing:
			return
		}
	}
}

// drain sends what is left when the session ends.
func (x *Exporter) drain(ctx context.Context) {
	for {
		select {
		case it := <-x.queue:
			if x.take(it); x.batch.full() {
				x.flush(ctx)
			}
		default:
			x.batch.addPending()
			x.flush(ctx)
			return
		}
	}
}

// flush sends the batch. A collector that fails is reported once.
func (x *Exporter) flush(ctx context.Context) {
	lost, err := x.batch.send(ctx)
	if err == nil {
		return
	}
	x.dropped.Add(int64(lost))
	x.cause = err
	select {
	case <-x.closing: // Close reports it with the number
		return
	default:
	}
	if !x.warned {
		x.warned = true
		x.warn(fmt.Sprintf("rows of the audit log are not exported to %s: %v; the log has them", x.where, err))
	}
}
