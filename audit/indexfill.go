package audit

// blockFiller makes the record of a block of its rows, which must come in order and without a gap.
type blockFiller struct {
	salt  uint64
	block *indexBlock // nil: the rows that came do not begin a block
	next  int         // the slot of the next row
	hash  string      // of the row before
}

// indexedValues are the values of the indexed columns, in their order.
type indexedValues [markColumns]string

// add adds the next row. After a row that does not follow the one before it, rows are ignored until a block begins.
func (f *blockFiller) add(seq int64, values indexedValues, ts int64, prev, hash string) {
	number, slot := (seq-1)/blockRows, int((seq-1)%blockRows)
	if slot == 0 {
		if f.block == nil {
			f.block = newIndexBlock(number)
		}
		f.block.restart(number)
		f.next = 0
	} else if f.block == nil || f.block.number != number || f.next != slot || f.hash != prev {
		f.next = -1
		return
	}
	var marks [markColumns]uint32
	for i, v := range values {
		marks[i] = mark(f.salt, v)
	}
	f.block.set(slot, marks, ts)
	f.next, f.hash = slot+1, hash
}

// lastTime is the last second of the year 2200, the latest that the index can have: a number of ns ends in 2262.
const lastTime = 7289654399

// addRow adds the next row, if it is one that the index can have.
func (f *blockFiller) addRow(r *Row) {
	if at := r.TS.Unix(); at < 0 || at > lastTime {
		f.next = -1
		return
	}
	values := indexedValues{
		markSession: r.SessionID, markEvent: string(r.Event), markDecision: string(r.Decision), markHost: r.Host,
		markConnector: r.ConnectorFQN, markID: r.ID, markReason: r.Reason, markOperation: r.Operation,
		markBinding: r.Binding,
	}
	f.add(r.Seq, values, r.TS.UnixNano(), r.PrevHash, r.Hash)
}

// indexed returns the values of the indexed columns.
func (r *rowText) indexed() indexedValues {
	return indexedValues{
		markSession: r.values[canonicalSession], markEvent: r.values[canonicalEvent],
		markDecision: r.values[canonicalDecision], markHost: r.values[canonicalHost],
		markConnector: r.values[canonicalConnector], markID: r.values[canonicalID],
		markReason: r.values[canonicalReason], markOperation: r.values[canonicalOperation],
		markBinding: r.values[canonicalBinding],
	}
}

// seal completes the record of a block of which all rows came.
func (f *blockFiller) seal() error {
	hash, ok := parseHash(f.hash)
	if !ok {
		return errNotIndexable
	}
	f.block.seal(hash)
	return nil
}
