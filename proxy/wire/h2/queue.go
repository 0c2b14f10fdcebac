package h2

// queue holds the bytes of a body that were received and not read, in pieces of at
// least pieceSize: however small the frames are, the queue takes little more
// memory than the bytes themselves.
type queue struct {
	pieces [][]byte
	read   int // bytes of the first piece that were read
	size   int // bytes to be read
	held   int // capacity of all pieces
}

const pieceSize = 2 << 10

// cost returns by how much the queue grows for n more bytes.
func (q *queue) cost(n int) int64 {
	if room := q.room(); n > room {
		return int64(max(n-room, pieceSize))
	}
	return 0
}

// room returns the unused capacity of the last piece.
func (q *queue) room() int {
	if len(q.pieces) == 0 {
		return 0
	}
	last := q.pieces[len(q.pieces)-1]
	return cap(last) - len(last)
}

func (q *queue) put(data []byte) {
	q.size += len(data)
	if n := min(q.room(), len(data)); n > 0 {
		last := &q.pieces[len(q.pieces)-1]
		*last = append(*last, data[:n]...)
		data = data[n:]
	}
	if len(data) > 0 {
		piece := make([]byte, 0, max(len(data), pieceSize))
		q.pieces = append(q.pieces, append(piece, data...))
		q.held += cap(piece)
	}
}

// take moves bytes into p, and returns how many, and by how much the queue has
// shrunk.
func (q *queue) take(p []byte) (n int, freed int64) {
	for q.size > 0 && n < len(p) {
		k := copy(p[n:], q.pieces[0][q.read:])
		n += k
		q.size -= k
		if q.read += k; q.read == len(q.pieces[0]) {
			freed += int64(cap(q.pieces[0]))
			q.held -= cap(q.pieces[0])
			q.pieces[0] = nil
			q.pieces, q.read = q.pieces[1:], 0
		}
	}
	if q.size == 0 {
		q.pieces = nil
	}
	return n, freed
}

// drop empties the queue, and returns by how much it has shrunk.
func (q *queue) drop() int64 {
	n := q.held
	*q = queue{}
	return int64(n)
}
