package scrub

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/internal/corpus"
)

// randomClasses returns classes as classTables wants them: the same for all bytes that are not ASCII.
func randomClasses(r *rand.Rand) *classTables {
	var class [256]uint8
	for c := range class {
		class[c] = uint8(r.Uint32())
	}
	for c := range 0x80 {
		class[0x80+c] = class[0x80]
	}
	return newClassTables(class)
}

// TestKernelsAgreeWithPortableCode compares the code that is chosen for this processor with the portable one, at every
// alignment, with random classes.
func TestKernelsAgreeWithPortableCode(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	bodies := [][]byte{corpus.Random(1, 4096), corpus.CodeHost(1, 4096), corpus.Escapes(1, 4096)}
	for range 50 {
		tables := randomClasses(r)
		for _, body := range bodies {
			for blocks := range 9 {
				at := r.IntN(len(body) - blocks*blockSize)
				compareClassify(t, body[at:at+blocks*blockSize], tables)
			}
		}
	}
	all := make([]byte, 256)
	for c := range all {
		all[c] = byte(c)
	}
	compareClassify(t, all, randomClasses(r))
}

func compareClassify(t *testing.T, src []byte, tables *classTables) {
	t.Helper()
	// What the kernel must not write stands behind dst.
	canary := masks{1, 2, 3, 4, 5, 6, 7, 8}
	n := len(src) / blockSize
	got, want := make([]masks, n+1), make([]masks, n+1)
	got[n], want[n] = canary, canary
	classify(got[:n], slices.Clip(src), tables)
	classifyPortable(want[:n], src, tables)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("block %d of %d: %x, want %x", i, n, got[i], want[i])
		}
	}
}

// FuzzKernels compares the code that is chosen for this processor with the portable one.
func FuzzKernels(f *testing.F) {
	f.Add(uint64(1), corpus.CodeHost(1, 256))
	f.Fuzz(func(t *testing.T, seed uint64, text []byte) {
		compareClassify(t, text[:len(text)/blockSize*blockSize], randomClasses(rand.New(rand.NewPCG(seed, 1))))
	})
}

func BenchmarkClassify(b *testing.B) {
	tables := randomClasses(rand.New(rand.NewPCG(5, 5)))
	src := corpus.CodeHost(1, 4096)
	dst := make([]masks, len(src)/blockSize)
	for name, how := range map[string]func([]masks, []byte, *classTables){
		"chosen": classify, "portable": classifyPortable,
	} {
		b.Run(name, func(b *testing.B) {
			before := cpuTime(b)
			for b.Loop() {
				how(dst, src, tables)
			}
			b.ReportMetric(float64(b.N*len(src))/float64(cpuTime(b)-before), "GB/cpu-s")
		})
	}
}
