package sandbox

import (
	"context"
	"os"
	"regexp"
)

// plainTerm is a name of a terminal's description, which is a file's too.
var plainTerm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._-]*$`)

// commonTerm is the terminal that nearly every image has a description of, and that nearly every terminal is alike.
const commonTerm = "xterm-256color"

// terminalVariables returns what a command learns of the person's terminal. TERM names a file of the image
// (terminfo(5)): where there is none, programs say that the terminal is unknown, and begin with few colours or not at
// all.
func (e *Engine) terminalVariables(ctx context.Context, img Image) []string {
	return terminalVariables(func(term string) bool { return e.describesTerminal(ctx, img, term) })
}

// terminalVariables is that of an engine, where describes reports whether there is the description of a terminal.
func terminalVariables(describes func(term string) bool) []string {
	var env []string
	if term := os.Getenv("TERM"); term != "" {
		if !plainTerm.MatchString(term) || term != commonTerm && term != "dumb" && !describes(term) {
			term = commonTerm
		}
		env = append(env, "TERM="+term)
	}
	if colors := os.Getenv("COLORTERM"); colors == "truecolor" || colors == "24bit" {
		env = append(env, "COLORTERM="+colors)
	}
	return env
}

// describesTerminal reports whether an image has the description of a terminal. One that cannot be read has it.
func (e *Engine) describesTerminal(ctx context.Context, img Image, term string) bool {
	image, err := e.OpenImage(ctx, img)
	if err != nil {
		return true
	}
	defer image.Close()
	return image.describesTerminal(term)
}

func (image *ImageFS) describesTerminal(term string) bool {
	for _, dir := range []string{"usr/share/terminfo", "lib/terminfo", "etc/terminfo", "usr/lib/terminfo"} {
		if _, err := image.Ask(dir + "/" + term[:1] + "/" + term); err == nil {
			return true
		}
	}
	return false
}
