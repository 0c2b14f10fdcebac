package scrub

import (
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/e2e/corpus"
)

// mostWork bounds how often each byte of a text is decoded, in any syntax and layer, whatever the text is: in two
// layers and in quoted-printable, without white space and as dumps. The hunts of some minutes find 9.
const mostWork = 20

// TestWorkIsLinear counts the bytes that are decoded beside the first pass over a text. Time would depend on the
// machine; this number depends on the text alone, and so a hunt for the worst text gives the same each time.
func TestWorkIsLinear(t *testing.T) {
	h := &hunter{r: huntSource(3), secrets: tokens(64, 40), piece: benchPiece}
	h.set = NewSet(h.secrets)
	var w workspace
	h.set.workspaces.New = func() any { return &w }
	h.cost = func(text []byte) float64 {
		w = workspace{}
		sc := h.set.NewScanner()
		for piece := range slices.Chunk(text, h.piece) {
			_ = sc.Write(piece)
		}
		return -float64(w.work()) / float64(len(text))
	}
	steps := 100
	if testing.Short() {
		steps = 20
	}
	h.fill()
	for range steps {
		h.step()
	}
	worst := h.herd[0]
	t.Logf("the worst of %d texts is decoded %.1f times: %#q", h.tried, -worst.speed, worst.parts)
	for _, found := range slowest() {
		h.add(found.parts)
	}
	for _, kind := range corpus.Kinds() {
		if n := -h.cost(kind.Make(1, huntedSize)); n > mostWork {
			t.Errorf("%s: each byte is decoded %.1f times, more than %d", kind.Name, n, mostWork)
		}
	}
	for _, p := range h.herd {
		for _, size := range []int{huntedSize, 4 * huntedSize} {
			if n := -h.cost(p.text(size)); n > mostWork {
				t.Errorf("in %d bytes, each is decoded %.1f times, more than %d: %#q", size, n, mostWork, p.parts)
			}
		}
	}
}

// work returns how many bytes were decoded.
func (w *workspace) work() int {
	n := 0
	for _, l := range []*layer{&w.once, &w.twice, &w.flat, &w.numbers} {
		n += l.work
	}
	for _, v := range []*view{&w.onceView, &w.twiceView, &w.qpView, &w.flatView, &w.hexes, &w.decimals} {
		n += v.work
	}
	return n
}
