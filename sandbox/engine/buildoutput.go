package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// buildOutput is what the output of a build tells of it. Both engines print a
// line for each step of a Dockerfile, and the image that it made.
type buildOutput struct {
	step   string   // the last that began: "step 5/6"; "" before the first
	last   string   // the last line of a command
	failed string   // the last error of apt
	made   []string // images of steps, in their order
	reused []string // those of steps that were there
	part   string   // a line whose end has not arrived
	from   bool     // the step began a stage: what it names was there
	cached bool     // the step made nothing
	full   bool     // a disk is full
}

// ErrFull is returned for a build that ran out of space.
var ErrFull = errors.New("the engine's disk is full")

// noSpace is how programs and engines say so (ENOSPC).
const noSpace = "no space left on device"

var (
	stepLine = regexp.MustCompile(`^(?:\[\d+/\d+\] )?(?i:step) (\d+/\d+) ?: ?(\S*)`)
	madeLine = regexp.MustCompile(`^\s*-+> ([0-9a-f]{11,64})$`)
	// The two streams of a command are merged as they arrive: an error may stand
	// behind a line of progress, and before another one.
	aptError = regexp.MustCompile(`(?:^|\.\.\.\s*)(E: .+)$`)
	colours  = regexp.MustCompile(`\x1b\[[0-9;]*m`)
)

// read passes on the output of a build, and returns the error in its stream.
func (o *buildOutput) read(r io.Reader, progress io.Writer) error {
	dec := json.NewDecoder(r)
	for {
		var line struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		if err := dec.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if line.Error != "" {
			return errors.New(oneLine(line.Error))
		}
		text := buildLines(line.Stream)
		o.note(text)
		if _, err := io.WriteString(progress, text); err != nil {
			return err
		}
	}
}

// buildLines makes a line of its own of each step that a program shows by
// overwriting its line.
func buildLines(stream string) string {
	return strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
}

// maxBuildPart bounds a line that does not end.
const maxBuildPart = 64 << 10

// note takes a piece of the output.
func (o *buildOutput) note(text string) {
	text = o.part + text
	end := strings.LastIndexByte(text, '\n') + 1
	o.part = text[max(end, len(text)-maxBuildPart):]
	for line := range strings.Lines(text[:end]) {
		o.noteLine(strings.TrimRight(colours.ReplaceAllString(line, ""), "\r\n\t "))
	}
}

func (o *buildOutput) noteLine(line string) {
	if step := stepLine.FindStringSubmatch(line); step != nil {
		o.step, o.last, o.failed = "step "+step[1], "", ""
		o.from, o.cached = strings.EqualFold(step[2], "FROM"), false
		return
	}
	if failed := aptError.FindStringSubmatch(line); failed != nil {
		o.failed = failed[1]
	}
	made := madeLine.FindStringSubmatch(line)
	o.full = o.full || strings.Contains(strings.ToLower(line), noSpace)
	switch {
	case made != nil && o.from:
	case made != nil && o.cached:
		o.reused = append(o.reused, made[1])
	case made != nil:
		o.made = append(o.made, made[1])
	case strings.Contains(line, "-> Using cache"):
		o.cached = true
	case line != "" && made == nil && !strings.HasPrefix(line, " ---> ") &&
		!strings.HasPrefix(line, "Removing intermediate container") && !strings.HasPrefix(line, `time="`):
		o.last = line
	}
}

// explain adds to the error of a build the step that failed, and apt's error or the
// last line of its command.
func (o *buildOutput) explain(err error) error {
	if o.full || strings.Contains(strings.ToLower(err.Error()), noSpace) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if o.step != "" {
		err = fmt.Errorf("%s: %w", o.step, err)
	}
	switch {
	case o.failed != "":
		err = fmt.Errorf("%w; its error: %s", err, oneLine(o.failed))
	case o.last != "":
		err = fmt.Errorf("%w; its last line: %s", err, oneLine(o.last))
	}
	return err
}

// maxLine is how much of an engine's error is shown.
const maxLine = 300

// oneLine is a text of an engine, of any length, as one line: the middle of a
// long one, such as a command of many lines, is left out.
func oneLine(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxLine {
		runes = append(append(runes[:maxLine/2:maxLine/2], []rune(" … ")...), runes[len(runes)-maxLine/2:]...)
	}
	return string(runes)
}
