package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// A frame of a journal is a head, a row, a sum and a line end. The head is a magic number, which no row contains
// because it is not UTF-8, and the length of the row, 4 bytes each. The row is the one that is hashed, without its
// seq, which it gets in the database. The sum is the SHA-256 of the sum before it, a line end, the head and the row:
// all that is in the file between the beginnings of two sums.

const (
	frameMagic = 0xf5feffc1
	FrameHead  = 8
	sumSize    = sha256.Size
	// framePrefix is what precedes a frame and is part of its sum.
	framePrefix = sumSize + 1
	// frameSpace is the size of a frame without its row.
	frameSpace = FrameHead + framePrefix
	// maxFrame bounds the size of a row.
	maxFrame = 32 << 20
)

var errLargeRow = errors.New("the row is too large")

// appendFrame appends the frame of r, without its sum.
func appendFrame(out []byte, r *chain.Row) ([]byte, error) {
	start := len(out)
	out = append(out, make([]byte, FrameHead)...)
	out, err := r.AppendBody(append(out, '{'))
	if err != nil {
		return nil, err
	}
	if len(out)-start-FrameHead > maxFrame {
		return nil, errLargeRow
	}
	return endFrame(out, start), nil
}

// endFrame sets the head of the frame that begins at start, and appends space for its sum and the line end.
func endFrame(out []byte, start int) []byte {
	binary.LittleEndian.PutUint32(out[start:], frameMagic)
	binary.LittleEndian.PutUint32(out[start+4:], uint32(len(out)-start-FrameHead)) //nolint:gosec // maxFrame bounds it
	out = append(out, make([]byte, sumSize)...)
	return append(out, '\n')
}

// chainFrames sets the sums of the frames behind sum, which it sets to the last one, and returns their number. The
// frames begin at framePrefix.
func chainFrames(frames []byte, sum *[sumSize]byte) (n int) {
	copy(frames, sum[:])
	frames[sumSize] = '\n'
	for at := framePrefix; at < len(frames); n++ {
		end := at + FrameHead + int(binary.LittleEndian.Uint32(frames[at+4:]))
		*sum = sha256.Sum256(frames[at-framePrefix : end])
		copy(frames[end:], sum[:])
		at = end + framePrefix
	}
	return n
}

// frameEnd returns where the frame at the beginning of raw ends, and false if it has no head of a frame. The end may
// be beyond that of raw.
func frameEnd(raw []byte) (int, bool) {
	if len(raw) < FrameHead || binary.LittleEndian.Uint32(raw) != frameMagic {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(raw[4:])
	return int(n) + frameSpace, n >= 2 && n <= maxFrame
}

// checkFrame returns the row of the frame at raw[at:end], and false if its sum or its line end is not right. The sum
// before it is in raw too.
func checkFrame(raw []byte, at, end int) ([]byte, bool) {
	tail := end - framePrefix
	sum := sha256.Sum256(raw[at-framePrefix : tail])
	return raw[at+FrameHead : tail], bytes.Equal(sum[:], raw[tail:end-1]) && raw[end-1] == '\n'
}

// parseSoon returns the rows of a batch that nothing waits for.
func parseSoon(b batch) (rows []*chain.Row) {
	for _, at := range b.soon {
		end, _ := frameEnd(b.frames[at:])
		r, raw := new(chain.Row), new(chain.RawRow)
		if r.Parse(string(b.frames[at+FrameHead:at+end-framePrefix]), raw) == nil {
			rows = append(rows, r)
		}
	}
	return rows
}
