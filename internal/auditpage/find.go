package auditpage

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
)

// find responds with the session, or with the row number of the event, whose id begins with the id of the query.
func (p *Page) find(w http.ResponseWriter, r *http.Request) error {
	l, done, err := p.logs.open()
	if err != nil {
		return err
	}
	defer done()
	id := strings.ToUpper(strings.TrimSpace(r.URL.Query().Get("id")))
	session, err := findSession(r, l.Log, id)
	if err != nil {
		return err
	}
	row, err := review.FindRow(r.Context(), l.Log, id)
	switch {
	case errors.Is(err, audit.ErrNotFound) && session != "":
		return writeJSON(w, map[string]any{"session": session})
	case errors.Is(err, audit.ErrNotFound):
		return hint.New(badQuery{fmt.Sprintf("no event and no session has an id that begins with %q", bounded(id, 64))},
			"the list has the ids of events and sessions in each exchange")
	case err != nil:
		return asBadQuery(err)
	case session != "":
		return asBadQuery(&review.AmbiguousError{What: "events and sessions", Prefix: id, IDs: []string{session, row.ID}})
	}
	return writeJSON(w, map[string]any{"seq": row.Seq})
}

// findSession returns the session whose id begins with prefix, or "".
func findSession(r *http.Request, l *audit.Log, prefix string) (string, error) {
	filter := audit.Filter{Session: prefix, Limit: 1}
	if err := review.Select(r.Context(), l, &filter, ""); err != nil {
		return "", asBadQuery(err)
	}
	if !audit.IsID(filter.Session) {
		return "", nil
	}
	rows, err := l.List(r.Context(), filter)
	if len(rows) == 0 {
		return "", err
	}
	return filter.Session, err
}
