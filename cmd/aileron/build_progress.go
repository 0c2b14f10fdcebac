package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// buildProgress shows the output of an image's build: on a terminal as one line with the newest output and the time,
// and its end if the build fails; elsewhere all of it, as it arrives.
type buildProgress struct {
	app *app
	now func() time.Time

	mu    sync.Mutex
	began time.Time // zero between builds
	lines []string  // the last of the output; the first of a build is aileron's own
	part  string    // a line whose end is not written yet
	ended chan struct{}
}

// maxBuildLines is how many lines of a failed build are shown.
const maxBuildLines = 20

func (a *app) newBuildProgress() *buildProgress { return &buildProgress{app: a, now: time.Now} }

// Write takes output of a build.
func (p *buildProgress) Write(output []byte) (int, error) {
	if !p.app.showStatus("") {
		return p.app.stderr.Write(output)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() {
		p.begin()
	}
	text := p.part + string(output)
	end := strings.LastIndexByte(text, '\n') + 1
	p.part = text[end:]
	for line := range strings.Lines(text[:end]) {
		if line = strings.TrimSpace(line); line != "" {
			p.lines = append(p.lines, line)
		}
	}
	p.lines = slices.Delete(p.lines, 0, max(0, len(p.lines)-maxBuildLines))
	p.show()
	return len(output), nil
}

// begin begins a build: from now on the line is shown anew each second.
func (p *buildProgress) begin() {
	p.began, p.ended = p.now(), make(chan struct{})
	go func(ended chan struct{}) {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.mu.Lock()
				p.show()
				p.mu.Unlock()
			case <-ended:
				return
			}
		}
	}(p.ended)
}

// show shows the newest line, unless the build has ended.
func (p *buildProgress) show() {
	if p.began.IsZero() || len(p.lines) == 0 {
		return
	}
	took := p.now().Sub(p.began).Truncate(time.Second)
	p.app.showStatus(fmt.Sprintf("aileron: building (%v): %s", took, p.lines[len(p.lines)-1]))
}

// BuildEnded clears the line, or leaves the end of the output of a build that failed.
func (p *buildProgress) BuildEnded(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() {
		return
	}
	close(p.ended)
	p.app.showStatus("")
	if err != nil {
		for _, line := range p.lines {
			fmt.Fprintln(p.app.stderr, termsafe.Line(line))
		}
	}
	p.began, p.lines, p.part = time.Time{}, nil, ""
}
