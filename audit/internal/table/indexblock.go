package table

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"math/bits"
	"time"
)

// BlockRows is the number of rows of a block: block n has the numbers n*BlockRows+1 to (n+1)*BlockRows.
const BlockRows = 4096

// The indexed columns, in their order in a record.
const (
	MarkSession = iota
	markEvent
	markDecision
	markHost
	markConnector
	MarkID
	markReason
	markOperation
	markBinding
	MarkColumns
)

const (
	MarkSize   = 4 * BlockRows
	timeSize   = 8 * BlockRows
	BlockHead  = 128
	recordSize = BlockHead + MarkColumns*MarkSize + timeSize + sumsSize
)

// What a record has behind the marks, as further columns.
const (
	timeColumn  = MarkColumns
	SumsColumn  = MarkColumns + 1 // see sums
	columnCount = MarkColumns + 2
)

// The numbers with which the head of a record begins.
const (
	blockMagic = 0x1d3b10c7
	// voidMagic is that of a block of which all rows have to be read: some of its numbers have no row, and if one came
	// back from a backup, a record without it would hide it.
	voidMagic = 0x1d3b10c8
)

// IndexBlock is the record of a block.
type indexBlock struct {
	number int64
	Hash   [32]byte // of its last row
	first  int64    // the earliest and the latest time of its rows, in ns since 1970
	last   int64
	void   bool
	Raw    []byte // the record as it is stored
}

// NewIndexBlock returns an empty record.
func NewIndexBlock(number int64) *indexBlock {
	return &indexBlock{number: number, first: math.MaxInt64, last: math.MinInt64, Raw: make([]byte, recordSize)}
}

// set makes a row the one at slot.
func (b *indexBlock) set(slot int, marks [MarkColumns]uint32, ts int64) {
	for column, m := range marks {
		binary.LittleEndian.PutUint32(b.Raw[BlockHead+column*MarkSize+4*slot:], m)
	}
	binary.LittleEndian.PutUint64(b.Column(timeColumn)[8*slot:], uint64(ts)) //nolint:gosec // as its bits
	b.first, b.last = min(b.first, ts), max(b.last, ts)
}

// Column returns the bytes of a column.
func (b *indexBlock) Column(n int) []byte {
	from, to := columnSpan(n)
	return b.Raw[from:to]
}

// columnSpan returns where a column is in a record.
func columnSpan(n int) (from, to int) {
	const times = BlockHead + MarkColumns*MarkSize
	switch n {
	case timeColumn:
		return times, times + timeSize
	case SumsColumn:
		return times + timeSize, recordSize
	}
	return BlockHead + n*MarkSize, BlockHead + (n+1)*MarkSize
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal completes the head of a block whose last row has the hash.
func (b *indexBlock) Seal(hash [32]byte) {
	b.Hash = hash
	head := binary.LittleEndian.AppendUint32(b.Raw[:0], blockMagic)
	if b.void {
		head = binary.LittleEndian.AppendUint32(b.Raw[:0], voidMagic)
	}
	for _, n := range []int64{b.number, b.first, b.last} {
		head = binary.LittleEndian.AppendUint64(head, uint64(n)) //nolint:gosec // as its bits
	}
	head = append(head, hash[:]...)
	for n := range columnCount {
		head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(b.Column(n), castagnoli))
	}
	binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
}

// headSize is the part of a head that its checksum covers.
const headSize = 4 + 3*8 + 32 + 4*columnCount

// parse reads the head of a record, and reports whether it is that of the block.
func (b *indexBlock) parse(head []byte) bool {
	magic := binary.LittleEndian.Uint32(head)
	if b.void = magic == voidMagic; magic != blockMagic && !b.void ||
		binary.LittleEndian.Uint32(head[headSize:]) != crc32.Checksum(head[:headSize], castagnoli) {
		return false
	}
	number := int64(binary.LittleEndian.Uint64(head[4:]))  //nolint:gosec // as its bits
	b.first = int64(binary.LittleEndian.Uint64(head[12:])) //nolint:gosec // as its bits
	b.last = int64(binary.LittleEndian.Uint64(head[20:]))  //nolint:gosec // as its bits
	copy(b.Hash[:], head[28:])
	return number == b.number
}

// Load reads the head of a block's record, and reports whether there is one.
func (x *indexFile) Load(b *indexBlock) bool {
	if _, err := x.file.ReadAt(b.Raw[:BlockHead], BlockAt(b.number)); err != nil {
		return false
	}
	return b.parse(b.Raw[:BlockHead])
}

// LoadColumn reads a column of a block whose head was read, and reports whether it is whole: a process may have been
// killed while it wrote the record, or writes it now.
func (x *indexFile) LoadColumn(b *indexBlock, n int) bool {
	column := b.Column(n)
	from, _ := columnSpan(n)
	if _, err := x.file.ReadAt(column, BlockAt(b.number)+int64(from)); err != nil {
		return false
	}
	sums := b.Raw[28+32:]
	return binary.LittleEndian.Uint32(sums[4*n:]) == crc32.Checksum(column, castagnoli)
}

// Store writes a sealed record.
func (x *indexFile) Store(b *indexBlock) error {
	_, err := x.file.WriteAt(b.Raw, BlockAt(b.number))
	return err
}

func BlockAt(number int64) int64 { return IndexHead + number*recordSize }

// same reports whether two sealed records have the same content.
func (b *indexBlock) same(other *indexBlock) bool { return bytes.Equal(b.Raw, other.Raw) }

// slots is a set of rows of a block.
type slots [BlockRows / 64]uint64

// keep removes the rows whose mark is none of these.
func (s *slots) keep(column []byte, marks []uint32) {
	if len(marks) != 1 {
		s.keepAny(column, marks)
		return
	}
	mark := marks[0]
	for w := range s {
		if s[w] == 0 {
			continue
		}
		var hits uint64
		part := column[256*w : 256*w+256]
		for i := range 64 {
			if binary.LittleEndian.Uint32(part[4*i:]) == mark {
				hits |= 1 << i
			}
		}
		s[w] &= hits
	}
}

// keepAny is keep for any number of marks.
func (s *slots) keepAny(column []byte, marks []uint32) {
	kept := make(map[uint32]struct{}, len(marks))
	for _, m := range marks {
		kept[m] = struct{}{}
	}
	for i := s.next(0); i >= 0; i = s.next(i + 1) {
		if _, ok := kept[binary.LittleEndian.Uint32(column[4*i:])]; !ok {
			s[i/64] &^= 1 << (i % 64)
		}
	}
}

// within removes the rows whose time is not in the interval.
func (s *slots) within(column []byte, from, until int64) {
	for i := range BlockRows {
		ts := int64(binary.LittleEndian.Uint64(column[8*i:])) //nolint:gosec // as its bits
		if ts < from || ts >= until {
			s[i/64] &^= 1 << (i % 64)
		}
	}
}

// all adds every row.
func (s *slots) all() {
	for w := range s {
		s[w] = ^uint64(0)
	}
}

// next returns the first row of s from slot on, -1 if there is none.
func (s *slots) next(slot int) int {
	for w := slot / 64; w < len(s); w++ {
		word := s[w]
		if w == slot/64 {
			word &= ^uint64(0) << (slot % 64)
		}
		if word != 0 {
			return 64*w + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// parseHash returns the 32 bytes of a row's hash.
func parseHash[T string | []byte](text T) (hash [32]byte, ok bool) {
	if len(text) != 64 {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(text))
	return hash, err == nil
}

// Nanos returns t in ns since 1970, or the nearest time that has such a number.
func Nanos(t time.Time) int64 {
	switch {
	case t.Year() < 1700:
		return math.MinInt64
	case t.Year() > 2200:
		return math.MaxInt64
	}
	return t.UnixNano()
}
