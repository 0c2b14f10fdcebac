package auditpage

import (
	"net/http"

	"github.com/ALRubinger/aileron/audit"
)

// found is a line of the response of [Page.chunks].
type found struct {
	Chunks [][3]int64 `json:"chunks"` // the highest number of each, its lowest, and how many selected rows it has
	At     int64      `json:"at"`     // all rows above this number were searched
	Done   bool       `json:"done,omitempty"`
	problem
}

// chunks streams where the selected rows are, newest first: a list of a million rows is a few thousand numbers.
func (p *Page) chunks(w http.ResponseWriter, r *http.Request) error {
	s, err := p.search(r)
	if err != nil {
		return err
	}
	defer s.end()
	fold(r, &s.filter)
	out := newStream(w)
	err = s.eachWindow(func(part audit.Filter) error {
		step := found{Chunks: [][3]int64{}, At: part.AfterSeq}
		add := func(seq int64) error { step.add(seq); return nil }
		if err := s.log.EachSeq(r.Context(), part, add); err != nil {
			return err
		}
		return out.send(step)
	})
	return out.send(found{Chunks: [][3]int64{}, Done: err == nil, problem: problemOf(err)})
}

// add counts a row, whose number is lower than those before, in the last chunk, or begins the next one.
func (f *found) add(seq int64) {
	if n := len(f.Chunks); n == 0 || f.Chunks[n-1][2] == chunkRows {
		f.Chunks = append(f.Chunks, [3]int64{seq, seq, 1})
		return
	}
	last := &f.Chunks[len(f.Chunks)-1]
	last[1] = seq
	last[2]++
}
