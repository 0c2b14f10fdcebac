package audit

import (
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/internal/panics"
)

// commitOrFail calls commit and returns a panic as an error, so that the leader passes the lead on in any case.
func (l *Log) commitOrFail(group []*Row, with table.Extra) (err error) {
	defer func() {
		if recover() == nil {
			return
		}
		err = fmt.Errorf("commit: it panicked at %s", strings.Join(panics.Origin(), " < "))
		if l.tx != nil {
			l.tx.Close()
			l.tx = nil
		}
	}()
	return l.commit(group, with)
}
