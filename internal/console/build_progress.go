package console

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// BuildProgress shows the output of an image's build: on a terminal as one line with the newest output and the time,
// and its end if the build fails; elsewhere all of it, as it arrives.
type BuildProgress struct {
	Console *Console
	Now     func() time.Time

	mu    sync.Mutex
	began time.Time // zero between builds
	lines []string  // the last of the output; the first of a build is aileron's own
	part  string    // a line whose end is not written yet
	ended chan struct{}
}

// MaxBuildLines is how many lines of a failed build are shown.
const MaxBuildLines = 20

func (c *Console) NewBuildProgress() *BuildProgress { return &BuildProgress{Console: c, Now: time.Now} }

// Write takes output of a build.
func (p *BuildProgress) Write(output []byte) (int, error) {
	if !p.Console.ShowStatus("") {
		return p.Console.Stderr.Write(output)
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
	p.lines = slices.Delete(p.lines, 0, max(0, len(p.lines)-MaxBuildLines))
	p.show()
	return len(output), nil
}

// begin begins a build: from now on the line is shown anew each second.
func (p *BuildProgress) begin() {
	p.began, p.ended = p.Now(), make(chan struct{})
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
func (p *BuildProgress) show() {
	if p.began.IsZero() || len(p.lines) == 0 {
		return
	}
	took := p.Now().Sub(p.began).Truncate(time.Second)
	p.Console.ShowStatus(fmt.Sprintf("aileron: building (%v): %s", took, p.lines[len(p.lines)-1]))
}

// BuildEnded clears the line, or leaves the end of the output of a build that failed.
func (p *BuildProgress) BuildEnded(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() {
		return
	}
	close(p.ended)
	p.Console.ShowStatus("")
	if err != nil {
		for _, line := range p.lines {
			fmt.Fprintln(p.Console.Stderr, termsafe.Line(line))
		}
	}
	p.began, p.lines, p.part = time.Time{}, nil, ""
}
