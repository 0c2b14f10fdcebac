package scrub

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/e2e/corpus"
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

// TestKernelsAgreeWithPortableCode compares the kernels of this processor with the portable one, at every alignment,
// with random classes.
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
	want := make([]masks, n+1)
	want[n] = canary
	classifyPortable(want[:n], src, tables)
	for name, classify := range classifiers() {
		got := make([]masks, n+1)
		got[n] = canary
		classify(got[:n], slices.Clip(src), tables)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: block %d of %d: %x, want %x", name, i, n, got[i], want[i])
			}
		}
	}
}

// TestSampleKernelAgreesWithPortableCode compares them with filters of every size, in which some of the samples are.
func TestSampleKernelAgreesWithPortableCode(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for range 500 {
		compareSample(t, r, corpus.CodeHost(r.Uint64(), 4096))
	}
}

// compareSample looks up the samples of some groups of text, in a filter with some runs of it and many others.
func compareSample(t *testing.T, r *rand.Rand, text []byte) {
	t.Helper()
	const group = samplesAtOnce * usualStride
	filter := bloomFilter{words: make([]uint64, 1<<r.IntN(maxFilterBits+1))}
	filter.mask = uint64(len(filter.words)) - 1
	for i := range filter.words {
		filter.words[i] = r.Uint64() & r.Uint64() & r.Uint64()
	}
	for range r.IntN(3) {
		if n := len(text) - 8; n > 0 {
			filter.putSample(sampleHash(eight(text, r.IntN(n))))
		}
	}
	for from := 0; from < len(text); {
		n := min(r.IntN(40), (len(text)-from)/group)
		src := slices.Clip(text[from : from+n*group])
		first, lowest := sampleGroups(src, n, &filter), sampleGroupsPortable(src, n, &filter)
		if first != lowest {
			t.Fatalf("group %d of %d, want %d", first, n, lowest)
		}
		for i := 0; i < first*group; i += usualStride {
			if filter.hasSample(sampleHash(eight(src, i))) {
				t.Fatalf("sample %d of %d groups is in the filter, and was passed over", i, n)
			}
		}
		from += (n + 1) * group
	}
}

// TestGatherKernelAgreesWithPortableCode compares them with masks that are empty, full and between.
func TestGatherKernelAgreesWithPortableCode(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		compareGather(t, r, corpus.Random(r.Uint64(), r.IntN(2000)))
	}
}

// compareGather gathers some of the bytes of text.
func compareGather(t *testing.T, r *rand.Rand, text []byte) {
	t.Helper()
	masks, set := make([]uint64, len(text)/blockSize), 0
	for i := range masks {
		switch masks[i] = r.Uint64(); r.IntN(4) {
		case 0:
			masks[i] = 0
		case 1:
			masks[i] = ^uint64(0)
		case 2:
			masks[i] &= r.Uint64()
		}
		set += bits.OnesCount64(masks[i])
	}
	src := slices.Clip(text[:len(masks)*blockSize])
	got, want := make([]byte, set+gatherSlack+1), make([]byte, set)
	got[set+gatherSlack] = 'c' // a canary
	if n := gatherPortable(want, src, masks); n != set {
		t.Fatalf("%d bytes of %d", n, set)
	}
	if n := gather(got[:set+gatherSlack], src, masks); n != set || !bytes.Equal(got[:set], want) {
		t.Fatalf("%d bytes of %d: %q, want %q", n, set, got[:set], want)
	}
	if got[set+gatherSlack] != 'c' {
		t.Fatal("the kernel wrote too much")
	}
}

// FuzzKernels compares the kernels of this processor with the portable ones.
func FuzzKernels(f *testing.F) {
	f.Add(uint64(1), corpus.CodeHost(1, 256))
	f.Fuzz(func(t *testing.T, seed uint64, text []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		compareClassify(t, text[:len(text)/blockSize*blockSize], randomClasses(r))
		compareSample(t, r, text)
		compareGather(t, r, text)
	})
}

func BenchmarkClassify(b *testing.B) {
	tables := randomClasses(rand.New(rand.NewPCG(5, 5)))
	src := corpus.CodeHost(1, 4096)
	dst := make([]masks, len(src)/blockSize)
	kernels := classifiers()
	kernels["portable"] = classifyPortable
	for name, how := range kernels {
		b.Run(name, func(b *testing.B) {
			before := cpuTime(b)
			for b.Loop() {
				how(dst, src, tables)
			}
			b.ReportMetric(float64(b.N*len(src))/float64(cpuTime(b)-before), "GB/cpu-s")
		})
	}
}
