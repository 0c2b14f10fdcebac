package table

import (
	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// blockFiller makes the record of a block of its rows, which must come in order and without a gap.
type blockFiller struct {
	salt  uint64
	block *indexBlock // nil: the rows that came do not begin a block
	Next  int         // the slot of the next row
	hash  string      // of the row before
}

// IndexedValues are the values of the indexed columns, in their order.
type IndexedValues [MarkColumns]string

// add adds the next row. After a row that does not follow the one before it, rows are ignored until a block begins.
func (f *blockFiller) add(seq int64, values IndexedValues, ts int64, prev, hash string) {
	number, slot := (seq-1)/BlockRows, int((seq-1)%BlockRows)
	if slot == 0 {
		if f.block == nil {
			f.block = NewIndexBlock(number)
		}
		f.block.restart(number)
		f.Next = 0
	} else if f.block == nil || f.block.number != number || f.Next != slot || f.hash != prev {
		f.Next = -1
		return
	}
	var marks [MarkColumns]uint32
	for i, v := range values {
		marks[i] = mark(f.salt, v)
	}
	f.block.set(slot, marks, ts)
	f.Next, f.hash = slot+1, hash
}

// lastTime is the last second of the year 2200, the latest that the index can have: a number of ns ends in 2262.
const lastTime = 7289654399

// addRow adds the next row, if it is one that the index can have.
func (f *blockFiller) addRow(r *chain.Row) {
	if at := r.TS.Unix(); at < 0 || at > lastTime {
		f.Next = -1
		return
	}
	values := IndexedValues{
		MarkSession: r.SessionID, markEvent: string(r.Event), markDecision: string(r.Decision), markHost: r.Host,
		markConnector: r.ConnectorFQN, MarkID: r.ID, markReason: r.Reason, markOperation: r.Operation,
		markBinding: r.Binding,
	}
	f.add(r.Seq, values, r.TS.UnixNano(), r.PrevHash, r.Hash)
}

// Indexed returns the values of the indexed columns.
func Indexed(r *chain.RowText) IndexedValues {
	return IndexedValues{
		MarkSession: r.Values[chain.CanonicalSession], markEvent: r.Values[chain.CanonicalEvent],
		markDecision: r.Values[chain.CanonicalDecision], markHost: r.Values[chain.CanonicalHost],
		markConnector: r.Values[chain.CanonicalConnector], MarkID: r.Values[chain.CanonicalID],
		markReason: r.Values[chain.CanonicalReason], markOperation: r.Values[chain.CanonicalOperation],
		markBinding: r.Values[chain.CanonicalBinding],
	}
}

// seal completes the record of a block of which all rows came.
func (f *blockFiller) seal() error {
	hash, ok := parseHash(f.hash)
	if !ok {
		return errNotIndexable
	}
	f.block.Seal(hash)
	return nil
}
