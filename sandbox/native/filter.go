package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
)

// profile is a seccomp profile as engines read it.
type profile struct {
	DefaultAction   string
	DefaultErrnoRet uint32
	Syscalls        []rule
}

// rule is what becomes of some calls.
type rule struct {
	Names    []string
	Action   string
	ErrnoRet uint32
	Args     []condition
}

// condition is one on an argument. All of a rule must hold.
type condition struct {
	Index           uint32
	Value, ValueTwo uint64
	Op              string
}

// What the kernel does with a call: seccomp(2).
const (
	retAllow = 0x7fff0000
	retErrno = 0x00050000
	retKill  = 0
)

// Offsets in struct seccomp_data. The words of an argument are in the order of a little-endian machine, which all are
// for which aileron is built.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// x32 is set in the numbers of calls of x86-64's other ABI.
const x32 = 0x40000000

// compile returns the filter of a profile for the architecture of this program: goarch is that of [runtime.GOARCH]. A
// call of any other architecture ends its thread, as that of an engine's runtime does.
//
// The numbers of calls are those of go-seccomp-bpf. Its assembler is not used: after a condition that does not hold, it
// compares the numbers of the calls that follow with the argument that was looked at last.
func compile(text, goarch string) ([]bpf.RawInstruction, error) {
	var p profile
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("read the seccomp profile: %w", err)
	}
	about, err := arch.GetInfo(goarch)
	if err != nil {
		return nil, fmt.Errorf("compile the seccomp profile: %w", err)
	}
	byDefault, err := verdict(p.DefaultAction, p.DefaultErrnoRet)
	if err != nil {
		return nil, err
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(about.ID), SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	if goarch == "amd64" {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32, SkipFalse: 1},
			bpf.RetConstant{Val: retKill})
	}
	plain, conditional, err := p.decisions(about)
	if err != nil {
		return nil, err
	}
	for _, c := range plain {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.number, SkipFalse: 1},
			bpf.RetConstant{Val: c.verdict})
	}
	for _, c := range conditional {
		block := c.block(byDefault)
		if len(block) > 255 {
			return nil, fmt.Errorf("compile the seccomp profile: call %d has too many conditions", c.number)
		}
		//nolint:gosec // checked above
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.number, SkipFalse: uint8(len(block))})
		program = append(program, block...)
	}
	return bpf.Assemble(append(program, bpf.RetConstant{Val: byDefault}))
}

// decision is what becomes of one call.
type decision struct {
	number  uint32
	verdict uint32
	sets    [][]condition // one of which must hold; none: always
}

// decisions returns what becomes of each call that the profile names and the architecture has.
func (p profile) decisions(about *arch.Info) (plain, conditional []decision, err error) {
	for _, r := range p.Syscalls {
		then, err := verdict(r.Action, r.ErrnoRet)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range r.Names {
			n, ok := about.SyscallNames[name]
			if !ok {
				continue
			}
			number := uint32(n) //nolint:gosec // a few hundred
			is := func(d decision) bool { return d.number == number }
			at := slices.IndexFunc(conditional, is)
			switch {
			case slices.ContainsFunc(plain, is), at >= 0 && (len(r.Args) == 0 || conditional[at].verdict != then):
				return nil, nil, fmt.Errorf("compile the seccomp profile: it decides twice about %s", name)
			case len(r.Args) == 0:
				plain = append(plain, decision{number, then, nil})
			case at >= 0:
				conditional[at].sets = append(conditional[at].sets, r.Args)
			default:
				conditional = append(conditional, decision{number, then, [][]condition{r.Args}})
			}
		}
	}
	for _, d := range conditional {
		for _, set := range d.sets {
			for _, c := range set {
				if c.Index > 5 || c.Op != "SCMP_CMP_EQ" && c.Op != "SCMP_CMP_MASKED_EQ" {
					return nil, nil, fmt.Errorf("compile the seccomp profile: the condition %+v is not known", c)
				}
			}
		}
	}
	return plain, conditional, nil
}

// block are the instructions that decide about a call, each of which returns: no other call's are run after them.
func (d decision) block(byDefault uint32) []bpf.Instruction {
	var out []bpf.Instruction
	for _, set := range d.sets {
		var tests []bpf.Instruction
		for _, c := range set {
			mask, value := ^uint64(0), c.Value
			if c.Op == "SCMP_CMP_MASKED_EQ" {
				mask, value = c.Value, c.ValueTwo
			}
			for half := range uint32(2) {
				shift := 32 * half
				tests = append(tests,
					bpf.LoadAbsolute{Off: offArgs + 8*c.Index + 4*half, Size: 4},
					bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: uint32(mask >> shift)}, //nolint:gosec // a half
					bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(value >> shift)})    //nolint:gosec // a half
			}
		}
		for i, test := range tests { // one that fails leads behind the set
			if jump, ok := test.(bpf.JumpIf); ok {
				jump.SkipFalse = uint8(len(tests) - i) //nolint:gosec // six for each condition
				tests[i] = jump
			}
		}
		out = append(append(out, tests...), bpf.RetConstant{Val: d.verdict})
	}
	return append(out, bpf.RetConstant{Val: byDefault})
}

func verdict(action string, errno uint32) (uint32, error) {
	switch action {
	case "SCMP_ACT_ALLOW":
		return retAllow, nil
	case "SCMP_ACT_ERRNO":
		return retErrno | errno, nil
	}
	return 0, errors.New("compile the seccomp profile: the action " + action + " is not known")
}

// filterFor is compile for this machine.
func filterFor(profile string) ([]bpf.RawInstruction, error) { return compile(profile, runtime.GOARCH) }
