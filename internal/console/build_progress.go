package console

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// BuildProgress shows the output of an image's build: on a terminal as one line with the newest output and the time,
// and its end if the build fails, whose whole output is kept in a file; elsewhere all of it, as it arrives.
type BuildProgress struct {
	Console *Console
	Now     func() time.Time

	log string // the file; "" is none

	mu    sync.Mutex
	all   []byte    // what the file gets
	began time.Time // zero between builds
	lines []string  // the last of the output; the first of a build is aileron's own
	part  string    // a line whose end is not written yet
	ended chan struct{}
}

// MaxBuildLines is how many lines of a failed build are shown.
const MaxBuildLines = 20

// maxBuildLog bounds what the file of a failed build has: the end of its output.
const maxBuildLog = 4 << 20

// NewBuildProgress returns a BuildProgress. log is the file with the output of the last build that failed, such as
// [BuildLog] of a home; "" is none.
func (c *Console) NewBuildProgress(log string) *BuildProgress {
	return &BuildProgress{Console: c, Now: time.Now, log: log}
}

// BuildLog returns the file with the output of the last build that failed, of a home.
func BuildLog(home string) string { return filepath.Join(home, "cache", "build.log") }

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
	if p.all = append(p.all, output...); len(p.all) > 2*maxBuildLog {
		p.all = append([]byte(nil), p.all[len(p.all)-maxBuildLog:]...)
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
		p.keep()
	}
	p.began, p.lines, p.part, p.all = time.Time{}, nil, "", nil
}

// keep writes the output of a build that failed to the file, and prints its name.
func (p *BuildProgress) keep() {
	if p.log == "" {
		return
	}
	all := p.all[max(0, len(p.all)-maxBuildLog):]
	err := os.MkdirAll(filepath.Dir(p.log), 0o700)
	if err == nil {
		err = os.WriteFile(p.log, []byte(termsafe.Text(string(all))), 0o600)
	}
	if err != nil {
		p.Console.Infof("aileron: the output of the build is not kept: %v", err)
		return
	}
	p.Console.Infof("aileron: the whole output of the build is in %s", p.log)
}
