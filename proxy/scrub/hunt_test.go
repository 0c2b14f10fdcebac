package scrub

import (
	"bytes"
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const huntedSize = 64 << 10

// TestHuntSlowest looks for a text that is slow to search, as an attacker would who makes an upstream send it: it
// combines escapes, digits, line ends and parts of the secrets, keeps what takes the most processor time, and varies
// that further. AILERON_SCRUB_HUNT is how long, as in "10m"; the default only tries the hunter itself. What it finds
// becomes a row of slowest. With AILERON_SCRUB_HITS=1 the texts may contain whole secrets, as an upstream that knows
// them could send; with AILERON_SCRUB_STRANGER=1 they contain parts of other secrets, with the same public beginnings,
// as one who knows no secret could send. AILERON_SCRUB_PIECE is the size of the pieces in which they arrive.
func TestHuntSlowest(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("AILERON_SCRUB_HUNT"))
	if err != nil {
		length = 200 * time.Millisecond
	}
	piece, err := strconv.Atoi(os.Getenv("AILERON_SCRUB_PIECE"))
	if err != nil {
		piece = benchPiece
	}
	h := newHunter(1, piece, os.Getenv("AILERON_SCRUB_HITS") != "")
	for until := time.Now().Add(length); time.Now().Before(until); {
		h.step()
	}
	best := h.herd[0]
	t.Logf("%.3f GB/s of processor time after %d texts:\n%#q", best.speed, h.tried, best.parts)
	if len(best.text(huntedSize)) != huntedSize {
		t.Errorf("the text has %d bytes, want %d", len(best.text(huntedSize)), huntedSize)
	}
}

// hunter keeps the slowest texts that it has tried.
type hunter struct {
	r       *rand.Rand
	set     *Set
	secrets []Credential
	piece   int
	hits    bool                      // whole secrets are allowed
	cost    func(text []byte) float64 // the lower, the slower; nil: measure
	herd    []prey                    // the slowest first
	tried   int
}

// prey is a text: its parts are repeated until they fill it.
type prey struct {
	parts []string
	speed float64 // in gigabytes per second
}

func (p prey) text(size int) []byte {
	period := strings.Join(p.parts, "")
	return []byte(strings.Repeat(period, size/len(period)+1)[:size])
}

const (
	herdSize = 12
	mostPart = 200
)

func newHunter(seed uint64, piece int, hits bool) *hunter {
	credentials := tokens(64, 40)
	h := &hunter{r: huntSource(seed), secrets: credentials, set: NewSet(credentials), piece: piece, hits: hits}
	if os.Getenv("AILERON_SCRUB_STRANGER") != "" {
		h.secrets = tokens(64, 41)
	}
	h.fill()
	return h
}

// huntSource returns the random numbers of a hunt.
func huntSource(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 77)) }

// fill starts with random texts.
func (h *hunter) fill() {
	for len(h.herd) < herdSize {
		h.add([]string{h.part(), h.part(), h.part()})
	}
}

// step tries a variation of one of the herd.
func (h *hunter) step() {
	r := h.r
	parts := slices.Clone(h.herd[min(r.IntN(len(h.herd)), r.IntN(len(h.herd)))].parts)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(parts))
		switch r.IntN(7) {
		case 0, 1:
			parts[at] = h.part()
		case 2:
			parts = slices.Insert(parts, at, h.part())
		case 3:
			if len(parts) > 1 {
				parts = slices.Delete(parts, at, at+1)
			}
		case 4: // a part of a part
			from := r.IntN(len(parts[at]))
			parts[at] = parts[at][from : from+1+r.IntN(len(parts[at])-from)]
		case 5:
			parts = slices.Insert(parts, at, parts[r.IntN(len(parts))])
		case 6:
			other := h.herd[r.IntN(len(h.herd))].parts
			parts = append(parts[:at+1:at+1], other[r.IntN(len(other)):]...)
		}
	}
	if len(parts) <= mostPart {
		h.add(parts)
	}
}

// add measures a text, and keeps it if it is among the slowest.
func (h *hunter) add(parts []string) {
	p := prey{parts: parts}
	h.tried++
	cost := h.cost
	if cost == nil {
		cost = h.measure
	}
	p.speed = cost(p.text(huntedSize))
	h.herd = append(h.herd, p)
	slices.SortStableFunc(h.herd, func(a, b prey) int { return cmp.Compare(a.speed, b.speed) })
	h.herd = h.herd[:min(len(h.herd), herdSize)]
}

// measure returns how many bytes of text are searched in a nanosecond of processor time, in the fastest of some runs:
// what disturbs one only makes it slower. A text with a hit
// that is not allowed is infinitely fast.
func (h *hunter) measure(text []byte) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sc := h.set.borrow()
	defer h.set.giveBack(sc)
	best := int64(1 << 62)
	for range 5 {
		sc.reset()
		before := threadTime()
		for piece := range slices.Chunk(text, h.piece) {
			_ = sc.Write(piece)
		}
		if best = min(best, threadTime()-before); sc.count > 0 && !h.hits {
			return math.Inf(1)
		}
	}
	return float64(len(text)) / float64(max(best, 1))
}

// threadTime returns the nanoseconds of processor time of this thread.
func threadTime() int64 {
	var used unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used)
	return used.Nano()
}

// part returns a random piece of text that may make a search look closer.
func (h *hunter) part() string {
	r := h.r
	switch r.IntN(12) {
	case 0:
		return pick(r, "%", "%2", "%25", `\`, `\\`, `\u00`, `\u{`, `\U0000`, "&", "&#", "&#x", "&amp;", "&amp", "=", "=\n",
			"=3D", "=\r\n", "%u00", "&quot;", `\"`, `\/`)
	case 1:
		return pick(r, "\n", "\r\n", `\n`, `\r\n`, " ", "\t", ",", ", ", ":", `"`, "-", ";", "'", ".", "<", "{", "}")
	case 2:
		one := pick(r, "a", "0", "%", `\`, "&", "=", "\n", " ", ",", "0x", "1,", "%25", `\u`, "A=")
		return strings.Repeat(one, 1+r.IntN(40))
	case 3:
		return hex.EncodeToString([]byte(h.fragment()))
	case 4:
		return base64.StdEncoding.EncodeToString([]byte(h.fragment()))
	case 5:
		return base32.StdEncoding.EncodeToString([]byte(h.fragment()))
	case 6:
		return numbers(r, h.fragment())
	case 7:
		return dump(r, h.fragment())
	case 8: // escaped once
		return each(r, h.fragment(), pick(r, percents, jsons, entitiesOf, script, unescapes, quotedPrintable))
	case 9: // escaped twice
		how := []func(*rand.Rand, byte, bool) string{percents, jsons, entitiesOf, script, unescapes}
		return each(r, each(r, h.fragment(), pick(r, how...)), pick(r, how...))
	case 10:
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
		var s bytes.Buffer
		for range 1 + r.IntN(40) {
			s.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return s.String()
	}
	return inCase(r, h.fragment())
}

// fragment returns a part of a secret that is too short to be a hit, or a secret if hits are allowed.
func (h *hunter) fragment() string {
	secret := h.secrets[h.r.IntN(len(h.secrets))].Secret
	n := 1 + h.r.IntN(Window-1)
	if h.hits && h.r.IntN(6) == 0 {
		n = len(secret)
	}
	from := 0
	if h.r.IntN(2) == 0 {
		from = h.r.IntN(len(secret) - n + 1)
	}
	return string(secret[from : from+n])
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// BenchmarkSlowest measures the texts that TestHuntSlowest has found.
func BenchmarkSlowest(b *testing.B) {
	set := NewSet(tokens(64, 40))
	for _, found := range slowest() {
		b.Run(found.name, func(b *testing.B) { benchmarkBody(b, set, prey{parts: found.parts}.text(huntedSize)) })
	}
}

// find is a text that a hunt has found.
type find struct {
	name  string
	parts []string
}

// slowest returns what the hunts have found, and what is slow in it by itself.
func slowest() []find {
	const inPage = `\X4B\&#x78;543&#x0070;&#x73;&#X5C;&#85;004A767\U&#x30;&#x30;&#x37;0&#x5c;&#117;` +
		`{&#051;&#50;&#125;s\&#85;0&#x30;00&#48;&#X30;33Y&#X68;`
	return []find{
		{"leads", []string{`%\&`}},
		{"references", []string{"&a"}},
		{"backslashes", []string{`\`}},
		{"percents", []string{"%25"}},
		{"line-ends", []string{`a\n`}},
		{"base64-in-all", []string{`43794b`, `eG94Yi1ZUXdkVmdKaWcz`, `SK-`, `%25`, `63`, `M5UHAX3KKZ4USMLNINIDGRLY`,
			`eG94Yi1ZUXdkVmdKaWcz`, `&amp`, `63`, `eG94Yi1ZUXdkVmdKaWcz`, `Z2hwX0NWSQ==`, `%25`, `PBRC2RKYLB3XOZDVNVKUC===`,
			"\r\n=62=2", `eG94Yi1ZUXdkVmdKaWcz`, `%25`, `PBRC2RKYLB3XOZDVNVKUC===`, "\r\n=62=2", `eG94Yi1ZUXdkVmdKaWcz`,
			`\\\\\\\\\\\\\\\\\\\\\\\\\\\\`, `eG94Yi1ZUXdkVmdKaWcz`, `\n`, `%25`}},
		{"all-encodings", []string{"INBE6MCDNM3HE3TBPBVA====", "buiHcC5OE3iJ", "nT=\nL=\r\nZ=46=\nijS=7A=\nq", "\r\n",
			"375468386b", "MFUXOU3BPBMFQZZWLA======", "PBXXQYRNPI3UCMQ=",
			"u007500%U0036%U0037%u0068%u0025u0070_%25%u0036eH%u0025U006%u0032aco%u0056%", `\&#117;&#123;67}\x68`,
			"344170507479323068", "ueltxjcxxpl", "PBXXQYRNPI3UCMQ=", "X", "0x0x0x0x0x0x0x0x0x0x0x0x", "c2stMA=="}},
		{"stranger", []string{`WjF0ZGMySVVo`, `eG94Yi15Ug==`, inPage, inPage, `P5PZmi3W92mBDnfO_yO0J1ito7v`,
			"=78=\n=6F=\r\n=78=\r\n=62=2D=6F=\n=54=59=\n=56=5A=38", `DSHXCVOMO0S`,
			`31-\\x71-\\x7A-\\x6f-\\x31-\\x46-\\x4a-\\x79-\\x4b-\\x4a-\\x45`, `WjF0ZGMySVVo`, `%25`, `#x37;0&#x5c;&#11`, `2`,
			`M5UHAXY=`, `sk-6\u006Fp`, `%25`, `g`, `WjF0ZGMySVVo`, `O`, `#x37;0&#x5c;&#11`, `6E`, inPage, `\&#117;&#123;67}\x68`,
			`M5UHAXY=`, `DSHXCVOMO0S`, `&&&&&&&&&&&&&`, `DSHXCVOMO0S`, `C5OE3i`, "\n", `5f4137`, `%25`, `DSHXCVOMO0S`,
			`WjF0ZGMySVVo`, `%25`, `#x37;0&#x5c;&#11`, `\&#117;&#123;67}\x68`, `M5UHAXY=`, `sk-6\u006Fp`, `DSHXCVOMO0S`}},
		{"stranger-dumps", []string{"\n", `o`, `67\\x68\\x70\\x5f\\x76\\x44\\x76\\x61\\x74`, `A767\U&#x30;&#x30;`, `%25`,
			`%25u0067%25u00%36%38%25%370%25%75%3005f`, `78-\\x6f-\\x78-\\x62-\\x2d-\\x46-\\x56-\\x72-\\x37-\\x6C-\\x41`, `%25`,
			`%78%5c%75%30%30%36%66%78%62%5c%75%30%30%32%44%68%30%5c%75%30%30%34%64%5C%75%30%30%34%61`, `;`, `Z2g=`, `&amp;`,
			`\&#117;&#123;67}\x68`, "=78=\n=6F=\r\n=78=\r\n=62=2D=6F=\n=54=59=\n=56=5A=38"}},
		{"swallowed", []string{`6768705f`, `\\\\\\\`, `%2`, `0;`, `%2`}},
		// a whole one, and a part in base64
		{"secrets", []string{`\\`, ` 0x`, `, `, `736b2d6e3152344e79524e5544626a`, `&quot;`,
			`786f78622d4b6d5364664d56514847795045577a5451556b5464576446577168646d563749564245`, `%25%25%25`,
			`c2staFJnb0hIdHdFUTRvWVNaSlN5SnlFTTVrQlVVMHM4V21GNHZxSA==`}},
	}
}
