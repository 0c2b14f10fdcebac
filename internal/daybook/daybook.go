// Package daybook keeps what the sessions of a home use in a day, in a file that they share. [Open] returns a [Book],
// for the budgets of package meter:
//
//	book, err := daybook.Open(daybook.Options{Dir: dir, Session: id, Alive: alive})
//	if err != nil {
//		return err
//	}
//	defer book.Close()
//	ledger := meter.New(meter.Options{Day: limits, Book: book})
//
// A day begins at midnight in the time zone of the process. Each has its own file, so that a clock that is set back
// finds what was used before. A change is kept when [Book.Change] returns, whatever happens to the process then; a
// power cut may take back those of the last second, as a copy of the file is on the disk (save.go). What a session had
// under way when it was killed is counted by the next one that notices: as much as the largest request so far, for
// each.
package daybook

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/meter"
)

const (
	// dayFormat is the name of a day's file.
	dayFormat = "2006-01-02"
	// maxDays is how many files are kept: those of the last days.
	maxDays = 32
	// maxPages is how many days a session has open: today, and one of which requests are still under way.
	maxPages = 2
	// lookAfter is how often a session looks whether others, which have requests under way, were killed.
	lookAfter = time.Second
)

// Options are what a [Book] is made of. Dir, Session and Alive are required.
type Options struct {
	Dir     string
	Session string                    // id of the caller's
	Alive   func(session string) bool // whether the process of another session runs
	Now     func() time.Time          // nil: time.Now

	SaveAfter time.Duration // how long a power cut may take back what was changed; default a second
}

// Book is the use of the days, for one session. It implements [meter.Book].
type Book struct {
	opts Options

	mu     sync.Mutex
	closed bool
	pages  []*page // the last one opened last
	saving sync.WaitGroup
	today  string
	begins time.Time // of today
	ends   time.Time
}

var _ meter.Book = (*Book)(nil)

// Open opens the book of a home, and creates its directory. Today's file must be one that can be read.
func Open(opts Options) (*Book, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.SaveAfter = cmp.Or(opts.SaveAfter, time.Second)
	b := &Book{opts: opts}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the budgets of the day: %w", err)
	}
	day, _ := b.Day()
	if err := b.Change(day, func(meter.Accounts) bool { return false }); err != nil {
		return nil, hint.New(fmt.Errorf("open the budgets of the day: %w", err),
			"check the disk and the rights on %s; a file in it that is removed with its copy (%s) begins its day anew",
			opts.Dir, savedSuffix)
	}
	b.prune()
	return b, nil
}

// Close saves and closes the files. What is under way stays so until another session notices that this one has ended.
func (b *Book) Close() {
	b.mu.Lock()
	for _, p := range b.pages {
		b.saveNow(p)
		_ = p.file.Close()
	}
	b.pages, b.closed = nil, true
	b.mu.Unlock()
	b.saving.Wait()
}

// Day implements [meter.Book].
func (b *Book) Day() (day string, left time.Duration) {
	now := b.opts.Now().Round(0) // a person may set the clock
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.begins) || !now.Before(b.ends) {
		y, m, d := now.Date()
		b.begins, b.ends = beginOf(y, m, d, now.Location()), beginOf(y, m, d+1, now.Location())
		b.today = now.Format(dayFormat)
	}
	return b.today, b.ends.Sub(now)
}

// beginOf returns when a day begins: at midnight, or where a change of the clock skips that, with the change.
func beginOf(y int, m time.Month, d int, at *time.Location) time.Time {
	begin := time.Date(y, m, d, 0, 0, 0, 0, at)
	zoneBegins, zoneEnds := begin.ZoneBounds()
	y2, m2, d2 := begin.Date()
	switch wall := time.Date(y2, m2, d2, 0, 0, 0, 0, time.UTC); {
	case wall.Before(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)): // still of the day before
		return zoneEnds
	case begin.Hour() > 0:
		return zoneBegins
	}
	return begin
}

// Change implements [meter.Book].
func (b *Book) Change(day string, f func(meter.Accounts) bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.page(day)
	if err != nil {
		return err
	}
	if err := p.lock(); err != nil {
		return err
	}
	defer p.unlock()
	if err := p.read(); err != nil {
		return err
	}
	changed := b.sweep(p)
	before := p.open()
	if f(p.accounts) {
		changed = true
		p.keepOpen(b.opts.Session, before)
	}
	if !changed {
		return nil
	}
	if err := p.write(); err != nil {
		return err
	}
	b.saveLater(p)
	return nil
}

// page returns the file of a day, which is opened if it is not.
func (b *Book) page(day string) (*page, error) {
	if i := slices.IndexFunc(b.pages, func(p *page) bool { return p.day == day }); i >= 0 {
		return b.pages[i], nil
	}
	if b.closed {
		return nil, os.ErrClosed
	}
	p, err := openPage(filepath.Join(b.opts.Dir, day), day)
	if err != nil {
		return nil, err
	}
	if len(b.pages) >= maxPages {
		b.saveNow(b.pages[0])
		_ = b.pages[0].file.Close()
		b.pages = slices.Delete(b.pages, 0, 1)
	}
	b.pages = append(b.pages, p)
	return p, nil
}

// sweep counts what sessions had under way that have ended, and reports whether there was any.
func (b *Book) sweep(p *page) (changed bool) {
	now := time.Now()
	if now.Sub(p.looked) < lookAfter {
		return false
	}
	p.looked = now
	for id, open := range p.sessions {
		if id == b.opts.Session || b.opts.Alive(id) {
			continue
		}
		for key, n := range open {
			a := p.accounts.Of(key)
			a.Open -= n
			a.Used = meter.Sum(a.Used, n*a.Largest)
		}
		delete(p.sessions, id)
		changed = true
	}
	return changed
}

// prune removes the files of old days.
func (b *Book) prune() {
	entries, err := os.ReadDir(b.opts.Dir)
	if err != nil {
		return
	}
	files := map[string][]string{}
	for _, e := range entries {
		day := e.Name()[:min(len(dayFormat), len(e.Name()))]
		if _, err := time.Parse(dayFormat, day); err == nil {
			files[day] = append(files[day], e.Name())
		}
	}
	days := slices.Sorted(maps.Keys(files))
	for _, day := range days[:max(0, len(days)-maxDays)] {
		for _, name := range files[day] {
			if day != b.today {
				_ = os.Remove(filepath.Join(b.opts.Dir, name))
			}
		}
	}
}

// errBusy is returned for a file that another session keeps locked: its process is stopped.
var errBusy = errors.New("another session keeps it locked")
