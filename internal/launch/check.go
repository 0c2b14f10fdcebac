package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
)

// Checked is what an image is checked for.
type Checked struct {
	Home    string // aileron's directory
	Dir     string // the project; "" is the current directory
	Command string
	Needs   []string // further commands
	Log     *slog.Logger
}

// ImageReport is what sandbox check prints.
type ImageReport struct {
	Tier    string   `json:"tier"`
	Runtime string   `json:"runtime"`
	Image   string   `json:"image"`
	Command string   `json:"command"`
	Missing []string `json:"missing"`
	Support string   `json:"support"`
}

// CheckImage reports whether a sandbox of an image that is there can run a command, and what it lacks if not. An error
// is the engine's.
func CheckImage(ctx context.Context, e *sandbox.Engine, image sandbox.Image, c Checked) (ImageReport, error) {
	dir, mask, err := Project(c.Dir, c.Home)
	if err != nil {
		return ImageReport{}, err
	}
	var untrusted *trust.Error
	if err := CanTrust(ctx, e, image, c.Log); err != nil && !errors.As(err, &untrusted) {
		return ImageReport{}, err
	}
	found, err := e.Check(ctx, sandbox.Spec{Image: image, Command: []string{c.Command}, Needs: c.Needs, Dir: dir,
		Mask: mask})
	if err != nil {
		return ImageReport{}, err
	}
	if untrusted != nil {
		found.Missing = append(found.Missing,
			fmt.Sprintf("a store that roots can be added to (%s: %v)", untrusted.File, untrusted.Cause))
	}
	r := ImageReport{
		Tier: image.Tier(), Runtime: e.Describe(), Image: image.Ref,
		Command: cmp.Or(found.Command, c.Command), Missing: append([]string{}, found.Missing...), Support: "ok",
	}
	if len(r.Missing) > 0 {
		r.Support = "missing " + strings.Join(r.Missing, "; ")
	}
	return r, nil
}
