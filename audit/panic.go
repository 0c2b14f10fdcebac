package audit

import (
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/internal/panics"
)

// commitOrFail is commit with a panic turned into an error, so that the lead is
// handed over all the same.
func (l *Log) commitOrFail(group []*Row) (err error) {
	defer func() {
		if recover() == nil {
			return
		}
		err = fmt.Errorf("commit: it panicked at %s", strings.Join(panics.Origin(), " < "))
		if l.tx != nil {
			l.tx.close()
			l.tx = nil
		}
	}()
	return l.commit(group)
}
