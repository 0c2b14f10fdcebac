package console

import (
	"fmt"
	"sync"
	"time"
)

// Transfer shows on a terminal how much has arrived of something that is fetched.
type Transfer struct {
	*Console
	what  string // "" where nothing is fetched
	shown time.Time
	mu    sync.Mutex // of what is printed
}

// Transfer begins to show that something is fetched: a source may take its time before it sends anything.
func (c *Console) Transfer(what string) *Transfer {
	t := &Transfer{Console: c, what: what, shown: time.Now()}
	if what != "" {
		c.ShowStatus("aileron: fetching " + what)
	}
	return t
}

// End clears what is shown.
func (t *Transfer) End() { t.ShowStatus("") }

// Progress shows how many bytes have arrived, and of how many if total is not 0.
func (t *Transfer) Progress(done, total int64) {
	if now := time.Now(); now.Sub(t.shown) > 200*time.Millisecond {
		amount := fmt.Sprint(done >> 10)
		if total > 0 {
			amount += fmt.Sprintf(" of %d", total>>10)
		}
		t.ShowStatus(fmt.Sprintf("aileron: fetching %s: %s KiB", t.what, amount))
		t.shown = now
	}
}

// Notice prints a message, such as that a request is repeated. Several goroutines may call it.
func (t *Transfer) Notice(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Infof("aileron: %s", text)
}
