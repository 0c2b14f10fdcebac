package auditpage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// Export is a format in which rows can be saved.
type Export struct {
	Name string // and the extension of the file
	Type string // media type
	// Begin, if not nil, begins an export to w: row is called for each row, oldest first, and then end, once.
	Begin func(w io.Writer) (row func(audit.Row) error, end func() error)
	// Write is used if Begin is nil. It writes all rows that filter selects.
	Write func(ctx context.Context, l *audit.Log, filter audit.Filter, w io.Writer) error
}

// exportJob is an export that the page has asked for.
type exportJob struct {
	format Export
	filter audit.Filter
}

func (p *Page) exportNames() []string {
	names := []string{}
	for _, e := range p.opts.Exports {
		names = append(names, e.Name)
	}
	return names
}

// ticket responds with the path of an export. A browser saves what it navigates to, and cannot send the key with a
// navigation: the ticket in the path takes its place, and can be used once.
func (p *Page) ticket(w http.ResponseWriter, r *http.Request) error {
	_, filter, done, err := p.selected(r)
	if err != nil {
		return err
	}
	done()
	job := exportJob{filter: filter}
	name := r.URL.Query().Get("format")
	for _, e := range p.opts.Exports {
		if e.Name == name {
			job.format = e
		}
	}
	if job.format.Name == "" {
		return badQuery{fmt.Sprintf("there is no format %q", bounded(name, 32))}
	}
	return writeJSON(w, map[string]string{"path": "/export/" + p.access.issue(job)})
}

// export responds with the rows of a ticket.
func (p *Page) export(w http.ResponseWriter, r *http.Request) {
	var job exportJob
	ok := p.hasCookie(r) && r.Method == http.MethodGet // HEAD must not use up the ticket
	if ok {
		job, ok = p.access.redeemTicket(r.PathValue("ticket"))
	}
	if !ok {
		refuse(w, http.StatusForbidden, "this export was not asked for by the page, or was saved already")
		return
	}
	p.respond(w, r, func(w http.ResponseWriter, r *http.Request) error {
		l, done, err := p.logs.open()
		if err != nil {
			return err
		}
		defer done()
		w.Header().Set("Content-Type", job.format.Type)
		name := "aileron-audit-" + time.Now().UTC().Format("20060102-150405") + "." + job.format.Name
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		if err := exportTo(r, w, l.Log, job); err != nil {
			panic(http.ErrAbortHandler) // the browser shows that the file is not whole
		}
		return nil
	})
}

// exportBatch is how many bytes of an export are held in memory.
const exportBatch = 256 << 10

// exportTo writes the rows of an export batch by batch, and reads the log only between batches: a browser that reads
// slowly holds back no checkpoint.
func exportTo(r *http.Request, w http.ResponseWriter, l *audit.Log, job exportJob) error {
	slow := pacedWriter{w, http.NewResponseController(w)}
	if job.format.Begin == nil {
		return job.format.Write(r.Context(), l, job.filter, slow)
	}
	var batch bytes.Buffer
	row, end := job.format.Begin(&batch)
	filter := job.filter
	for more := true; more; {
		more = false
		err := l.Each(r.Context(), filter, func(one audit.Row) error {
			filter.AfterSeq = one.Seq
			if err := row(one); err != nil {
				return err
			}
			if batch.Len() >= exportBatch {
				more = true
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if !more {
			if err := end(); err != nil {
				return err
			}
		}
		if _, err := batch.WriteTo(slow); err != nil {
			return err
		}
	}
	return nil
}

// pacedWriter bounds the time of each Write.
type pacedWriter struct {
	io.Writer
	control *http.ResponseController
}

func (p pacedWriter) Write(b []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return p.Writer.Write(b)
}
