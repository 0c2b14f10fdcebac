package auditpage

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ALRubinger/aileron/audit"
)

// logs opens the log, and opens it anew when another file is at its path.
type logs struct {
	path string
	mu   sync.Mutex
	now  *openLog
	file os.FileInfo // that was open last
	turn int         // how many files were
}

// openLog is one open log, which is closed when its last user is done.
type openLog struct {
	*audit.Log
	turn    int
	warning error // it is of another version, and only a part of it can be shown
	users   int   // guarded by logs.mu; logs itself is one
}

// open returns the log. Call the function when it is no longer used.
func (l *logs) open() (*openLog, func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	file, err := os.Stat(l.path)
	if err != nil || !os.SameFile(file, l.file) {
		l.dropLocked()
	}
	if err != nil {
		return nil, nil, err
	}
	if l.now == nil {
		if l.now, err = l.openFile(file); err != nil {
			return nil, nil, err
		}
	}
	used := l.now
	used.users++
	return used, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		used.leave()
	}, nil
}

func (l *logs) openFile(file os.FileInfo) (*openLog, error) {
	opened, err := audit.OpenReader(l.path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(file, l.file) {
		l.file = file
		l.turn++
	}
	o := &openLog{Log: opened, turn: l.turn, users: 1}
	var foreign *audit.SchemaError
	switch {
	case errors.As(opened.Foreign(), &foreign) && len(foreign.Lacks) > 0:
		return nil, errors.Join(foreign, opened.Close())
	case foreign != nil:
		o.warning = fmt.Errorf("%w: only the columns that this version knows are shown", foreign)
	}
	return o, nil
}

// leave ends one use. logs.mu must be held.
func (o *openLog) leave() {
	if o.users--; o.users == 0 {
		_ = o.Close()
	}
}

// drop makes the next open open the log anew: a new connection may be able to read it.
func (l *logs) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked()
}

func (l *logs) dropLocked() {
	if l.now != nil {
		l.now.leave()
		l.now = nil
	}
}
