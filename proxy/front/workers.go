package front

import "sync"

// workers runs functions on goroutines that it keeps. The stack of a goroutine
// that has served a connection has grown; a new one would grow, and copy, it
// again for each connection and each handshake. The collector shrinks the stacks
// of those that are idle.
type workers struct {
	mu    sync.Mutex
	users int           // between open and close
	idle  []chan func() // of the goroutines that are kept, the last one used first
	all   sync.WaitGroup
}

// maxIdleWorkers bounds the goroutines that are kept.
const maxIdleWorkers = 32

// open allows goroutines to be kept until close is called as often.
func (w *workers) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users++
}

// close ends the goroutines that are kept, and waits for them, unless others
// still use them. All functions of its caller have returned.
func (w *workers) close() {
	w.mu.Lock()
	w.users--
	if w.users > 0 {
		w.mu.Unlock()
		return
	}
	for _, idle := range w.idle {
		close(idle)
	}
	w.idle = nil
	w.mu.Unlock()
	w.all.Wait()
}

// run runs f on a goroutine of its own. f must not panic.
func (w *workers) run(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.idle); n > 0 {
		w.idle[n-1] <- f // it has room for one
		w.idle = w.idle[:n-1]
		return
	}
	w.all.Go(func() {
		next := make(chan func(), 1)
		for f, ok := f, true; ok; f, ok = <-next {
			f()
			if !w.keep(next) {
				return
			}
		}
	})
}

// keep adds a goroutine to those that are idle, and reports whether it is kept.
func (w *workers) keep(next chan func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users == 0 || len(w.idle) >= maxIdleWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}
