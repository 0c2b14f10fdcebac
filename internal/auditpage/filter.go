package auditpage

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
)

// badQuery is an error in the query of a request. Its status is 400.
type badQuery struct{ text string }

func (b badQuery) Error() string { return b.text }

// selected opens the log and returns the filter of a request's query. done must be called when the log is no longer
// used.
func (p *Page) selected(r *http.Request) (l *openLog, f audit.Filter, done func(), err error) {
	q := r.URL.Query()
	if f, err = p.filter(q); err != nil {
		return nil, f, nil, err
	}
	if l, done, err = p.logs.open(); err != nil {
		return nil, f, nil, err
	}
	if err = review.Select(r.Context(), l.Log, &f, q.Get("agent")); err != nil {
		done()
		return nil, f, nil, asBadQuery(err)
	}
	return l, f, done, nil
}

// asBadQuery returns a *review.AmbiguousError as a badQuery with a hint, and any other error unchanged.
func asBadQuery(err error) error {
	var several *review.AmbiguousError
	if !errors.As(err, &several) {
		return err
	}
	return hint.New(badQuery{several.Error()}, "write more of one: %s", several.List())
}

// filter returns the filter of a query, as far as it can be known without the log. The parameters are named after the
// flags of aileron audit list; after and through are a range of row numbers.
func (p *Page) filter(q url.Values) (f audit.Filter, err error) {
	f = audit.Filter{Session: q.Get("session"), Event: audit.Event(q.Get("event")),
		Decision: audit.Decision(q.Get("decision")), Host: q.Get("host"), Connector: q.Get("connector"),
		Binding: q.Get("binding"), Operation: q.Get("operation"), Reason: q.Get("reason")}
	if f.Event != "" && !audit.IsEvent(f.Event) {
		return f, badQuery{fmt.Sprintf("there is no event %q", bounded(string(f.Event), 64))}
	}
	if f.Decision != "" && !slices.Contains(audit.Decisions(), f.Decision) {
		return f, badQuery{fmt.Sprintf("there is no decision %q", bounded(string(f.Decision), 64))}
	}
	if f.Connector != "" && !strings.Contains(f.Connector, "://") && p.opts.Connector != nil {
		if f.Connector, err = p.opts.Connector(f.Connector); err != nil {
			return f, badQuery{bounded(err.Error(), maxMessage)}
		}
	}
	if f.Since, err = moment(q.Get("since"), "since"); err != nil {
		return f, err
	}
	if f.Until, err = moment(q.Get("until"), "until"); err != nil {
		return f, err
	}
	if f.AfterSeq, err = number(q, "after"); err != nil {
		return f, err
	}
	f.ThroughSeq, err = number(q, "through")
	return f, err
}

// moment parses a time in the forms that the flags of aileron audit list accept. "" is the zero time.
func moment(text, name string) (time.Time, error) {
	at, err := review.ParseMoment(text, time.Now())
	if err != nil {
		return at, badQuery{fmt.Sprintf("%s is %q; %v", name, bounded(text, 64), err)}
	}
	return at, nil
}

// number returns a parameter that is not negative, and 0 if the query does not have it.
func number(q url.Values, name string) (int64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0, badQuery{fmt.Sprintf("%s is %q; it must be a number", name, bounded(q.Get(name), 64))}
	}
	return n, nil
}
