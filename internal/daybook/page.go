package daybook

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/proxy/meter"
)

// A file has two images, of which the one with the higher number counts. A change replaces the other one by a single
// write, so that a process that is killed leaves the last image whole. An image is text:
//
//	aileron-budgets 1 NUMBER LENGTH CHECKSUM
//	use USED LARGEST TOLD METER [BINDING]
//	open COUNT SESSION METER [BINDING]
const (
	magic      = "aileron-budgets"
	pageFormat = format.First

	imageSize = 512 << 10 // the second image begins there
	headSize  = 80        // of its first line, padded
)

const (
	lockWait  = 2 * time.Second        // for a process that holds the lock, which takes microseconds
	lockPause = 100 * time.Microsecond // at first, between two attempts
)

// page is the file of a day.
type page struct {
	day  string
	file *os.File
	busy time.Time // it was locked then, for too long

	number   uint64            // of the image that was read or written last; 0: none
	heads    [2][headSize]byte // the first lines of both images, as they were then
	accounts meter.Accounts
	sessions map[string]map[meter.Key]int64 // with requests under way
	looked   time.Time                      // when sessions were looked for that were killed

	saves    *time.Timer // nil: nothing is to be saved
	restored bool        // the copy was looked at

	before map[meter.Key]int64 // see open; it is filled anew each time
	raw    []byte              // of the image that was written last
	keys   []meter.Key
}

func openPage(path, day string) (*page, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &page{day: day, file: f, accounts: meter.Accounts{}, sessions: map[string]map[meter.Key]int64{},
		before: map[meter.Key]int64{}}, nil
}

// lock waits until no other process has the file.
func (p *page) lock() error {
	if time.Since(p.busy) < time.Second {
		return errBusy // do not queue up behind a process that is stopped
	}
	began, pause := time.Now(), lockPause
	for {
		err := unix.Flock(int(p.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		case time.Since(began) > lockWait:
			p.busy = time.Now()
			return errBusy
		default:
			time.Sleep(pause)
			pause = min(2*pause, 5*time.Millisecond)
		}
	}
}

func (p *page) unlock() { _ = unix.Flock(int(p.file.Fd()), unix.LOCK_UN) }

// errDamaged is returned for what no session has written whole.
var errDamaged = errors.New("is damaged")

// image is one of the two of a file.
type image struct {
	number uint64
	text   []byte // behind the first line
}

// read takes the newest image, unless it is the one that is known.
func (p *page) read() error {
	var heads [2][headSize]byte
	for i := range heads {
		if _, err := p.file.ReadAt(heads[i][:], int64(i)*imageSize); err != nil && err != io.EOF {
			return err
		}
	}
	if heads == p.heads && p.number != 0 {
		return nil
	}
	p.number = 0
	var newest image
	var faults []error
	for i := range heads {
		image, err := readImage(p.file.Name(), heads[i], p.file, int64(i)*imageSize)
		if faults = append(faults, err); image.number > newest.number {
			newest = image
		}
	}
	// The first image of a day is the second of the file: if it was cut off, nothing was written before.
	first := heads[0] == [headSize]byte{} && errors.Is(faults[1], errDamaged)
	if !p.restored {
		saved, err := p.readSaved()
		if saved.number > newest.number { // a power cut took back what is newer
			newest = saved
		}
		faults, p.restored = append(faults, err), true
	}
	err := errors.Join(faults...)
	if errors.As(err, new(*format.Error)) || newest.number == 0 && err != nil && !first {
		return err
	}
	if err := p.parse(newest); err != nil {
		return err
	}
	p.heads = heads
	return nil
}

// readImage reads the image at an offset, of which it is given the first line. Its number is 0 if nothing was written
// there.
func readImage(name string, first [headSize]byte, from io.ReaderAt, at int64) (i image, err error) {
	if first == [headSize]byte{} {
		return i, nil
	}
	head := strings.Fields(string(first[:]))
	damaged := fmt.Errorf("%s %w", name, errDamaged)
	if len(head) != 5 || head[0] != magic {
		return i, damaged
	}
	if head[1] != strconv.Itoa(pageFormat) {
		return i, &format.Error{Path: name, Format: head[1], Known: pageFormat}
	}
	number, err := strconv.ParseUint(head[2], 10, 64)
	size, err2 := strconv.ParseUint(head[3], 10, 31)
	sum, err3 := strconv.ParseUint(head[4], 16, 32)
	if errors.Join(err, err2, err3) != nil || number == 0 || size > imageSize-headSize {
		return i, damaged
	}
	text := make([]byte, size)
	switch _, err := from.ReadAt(text, at+headSize); {
	case err != nil && err != io.EOF:
		return i, err
	case uint64(crc32.ChecksumIEEE(text)) != sum:
		return i, damaged
	}
	return image{number, text}, nil
}

// parse takes an image.
func (p *page) parse(i image) error {
	accounts, sessions := meter.Accounts{}, map[string]map[meter.Key]int64{}
	for line := range strings.Lines(string(i.text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		ok := false
		switch {
		case f[0] == "use" && len(f) == 6:
			a := accounts.Of(meter.Key{Binding: f[5], Meter: f[4]})
			ok = number(f[1], &a.Used) && number(f[2], &a.Largest) && number(f[3], &a.Told)
		case f[0] == "open" && len(f) == 5:
			key := meter.Key{Binding: f[4], Meter: f[3]}
			var n int64
			ok = number(f[1], &n)
			if sessions[f[2]] == nil {
				sessions[f[2]] = map[meter.Key]int64{}
			}
			sessions[f[2]][key] = n
			accounts.Of(key).Open += n
		}
		if !ok {
			return fmt.Errorf("%s is damaged", p.file.Name())
		}
	}
	p.number, p.accounts, p.sessions = i.number, accounts, sessions
	return nil
}

// number reads one that is not negative.
func number(text string, n *int64) bool {
	v, err := strconv.ParseInt(text, 10, 64)
	*n = v
	return err == nil && v >= 0
}

// open returns how many requests are under way, by account. The result is valid until the next call.
func (p *page) open() map[meter.Key]int64 {
	clear(p.before)
	for key, a := range p.accounts {
		p.before[key] = a.Open
	}
	return p.before
}

// keepOpen notes what has been added to before as requests of a session.
func (p *page) keepOpen(session string, before map[meter.Key]int64) {
	own := p.sessions[session]
	for key, a := range p.accounts {
		n := a.Open - before[key]
		if n == 0 {
			continue
		}
		if own == nil {
			own = map[meter.Key]int64{}
			p.sessions[session] = own
		}
		if own[key] += n; own[key] <= 0 { // of a session that was taken for one that has ended
			a.Open -= own[key]
			delete(own, key)
		}
	}
}

// write replaces the older image. If that fails, the next read takes the newest one again.
func (p *page) write() error {
	next := p.number + 1
	raw := p.format(next)
	p.number = 0
	if len(raw) > imageSize {
		return fmt.Errorf("%s has too many entries", p.file.Name())
	}
	if _, err := p.file.WriteAt(raw, int64(next%2)*imageSize); err != nil {
		return err
	}
	p.number, p.heads[next%2] = next, [headSize]byte(raw)
	return nil
}

// format returns the image of a number.
func (p *page) format(number uint64) []byte {
	raw := append(p.raw[:0], make([]byte, headSize)...)
	p.keys = slices.AppendSeq(p.keys[:0], maps.Keys(p.accounts))
	slices.SortFunc(p.keys, compareKeys)
	for _, key := range p.keys {
		a := p.accounts[key]
		raw = append(raw, "use "...)
		for _, n := range []int64{a.Used, a.Largest, a.Told} {
			raw = append(strconv.AppendInt(raw, n, 10), ' ')
		}
		raw = appendKey(raw, key)
	}
	for id, open := range p.sessions {
		for key, n := range open {
			raw = append(strconv.AppendInt(append(raw, "open "...), n, 10), ' ')
			raw = appendKey(append(append(raw, id...), ' '), key)
		}
	}
	head := raw[:0:headSize]
	head = append(head, magic+" "...)
	head = append(strconv.AppendInt(head, pageFormat, 10), ' ')
	head = append(strconv.AppendUint(head, number, 10), ' ')
	head = append(strconv.AppendInt(head, int64(len(raw)-headSize), 10), ' ')
	head = strconv.AppendUint(head, uint64(crc32.ChecksumIEEE(raw[headSize:])), 16)
	for len(head) < headSize-1 {
		head = append(head, ' ')
	}
	_ = append(head, '\n')
	p.raw = raw
	return raw
}

func appendKey(raw []byte, key meter.Key) []byte {
	raw = append(append(raw, key.Meter...), ' ')
	return append(append(raw, key.Binding...), '\n')
}

func compareKeys(a, b meter.Key) int {
	if c := strings.Compare(a.Binding, b.Binding); c != 0 {
		return c
	}
	return strings.Compare(a.Meter, b.Meter)
}
