package native

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// Call by call, the filter of a native sandbox decides as what an engine's runtime compiles of the same profile.
func TestTheFilterDecidesAsAnEnginesDoes(t *testing.T) {
	if os.Geteuid() != 0 {
		harness.Need(t, "root: the kernel shows the filter of a process to root alone")
	}
	harness.NeedEngine(t, "podman")
	ours := decider(t, must.Get(filterFor(profileText(t)))(t))
	theirs := decider(t, engineFilter(t))
	arches := []uint32{unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64, unix.AUDIT_ARCH_I386, 0}
	words := []uint64{0, 1, 2, 3, 10, 16, 17, 40, 41, 53, 56, 135, 0x20000, 131073, 2114060288, 0x10000000, 0x1000, 0x11,
		0x7e020000, 0x00020000, 4294967295, 4294967296, 4294967297, 1 << 33, ^uint64(0)}
	seeded := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for _, arch := range arches {
		for nr := range uint32(1100) {
			for _, number := range []uint32{nr, nr | x32} {
				args := []uint64{words[seeded.IntN(len(words))], seeded.Uint64(), seeded.Uint64()}
				for _, first := range append(words, seeded.Uint64(), uint64(seeded.Uint32())) {
					args[0] = first
					compared++
					if got, want := ours(arch, number, args), theirs(arch, number, args); got != want {
						t.Fatalf("call %#x of %#x with %#x: %#x, want %#x as the engine's", number, arch, args, got, want)
					}
				}
			}
		}
	}
	t.Logf("%d decisions are equal", compared)
}

func profileText(t *testing.T) string {
	return string(must.Get(os.ReadFile("../seccomp.json"))(t))
}

// decider returns what a filter decides about a call.
func decider(t *testing.T, filter []bpf.RawInstruction) func(arch, nr uint32, args []uint64) uint32 {
	t.Helper()
	program, ok := bpf.Disassemble(filter)
	if !ok {
		t.Fatal("the filter has an instruction that is not known")
	}
	vm := must.Get(bpf.NewVM(program))(t)
	return func(arch, nr uint32, args []uint64) uint32 {
		data := make([]byte, 64) // struct seccomp_data, in words of the order that the virtual machine reads
		binary.BigEndian.PutUint32(data[offNumber:], nr)
		binary.BigEndian.PutUint32(data[offArch:], arch)
		for i, arg := range args {
			binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(arg))
			binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(arg>>32))
		}
		verdict, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(verdict)
	}
}

// engineFilter returns the filter of a container's process, as the kernel has it.
func engineFilter(t *testing.T) []bpf.RawInstruction {
	t.Helper()
	root := must.OpenDir(t)
	static := filepath.Join(root, "wait")
	source := filepath.Join(root, "wait.go")
	const waits = "package main\n\nimport \"os\"\n\nfunc main() { r, _, _ := os.Pipe(); r.Read(make([]byte, 1)) }\n"
	must.Do(t, os.WriteFile(source, []byte(waits), 0o644))
	build := exec.Command("go", "build", "-o", static, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	profile := must.Get(filepath.Abs("../seccomp.json"))(t)
	podman := func(args ...string) string {
		cmd := exec.Command("podman", args...)
		cmd.Env = append(os.Environ(), harness.EngineEnv(t)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("podman %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	name := fmt.Sprintf("native-filter-%d", os.Getpid())
	podman("run", "--detach", "--name", name, "--network=none", "--security-opt", "seccomp="+profile, "--rootfs", root,
		"/wait")
	t.Cleanup(func() { podman("rm", "--force", "--time", "0", name) })
	pid := must.Get(strconv.Atoi(podman("inspect", "--format", "{{.State.Pid}}", name)))(t)

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must.Do(t, unix.PtraceAttach(pid))
	defer func() { _ = unix.PtraceDetach(pid) }()
	var status unix.WaitStatus
	must.Get(unix.Wait4(pid, &status, unix.WALL, nil))(t)
	filter := make([]unix.SockFilter, 4096)
	n, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SECCOMP_GET_FILTER, uintptr(pid), 0,
		uintptr(unsafe.Pointer(&filter[0])), 0, 0)
	if errno != 0 {
		t.Fatalf("read the filter of process %d: %v", pid, errno)
	}
	var out []bpf.RawInstruction
	for _, f := range filter[:n] {
		out = append(out, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K})
	}
	return out
}

// What only some users of this host may read of /etc is not copied, even if root copies.
func TestEtcIsWhatEveryUserMayRead(t *testing.T) {
	dir := must.OpenDir(t)
	for name, mode := range map[string]os.FileMode{
		"services": 0o644, "shells": 0o600, "shadow": 0o644, "python3.11": 0o644,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(name), mode))
	}
	for name, mode := range map[string]os.FileMode{"ssl": 0o755, "ssl/private": 0o710, "ssl/certs": 0o755,
		"php/8/cli": 0o755, "php/8/fpm": 0o755} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(dir, name, "file"), nil, 0o644))
		must.Do(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	must.Do(t, os.Symlink("/etc/services", filepath.Join(dir, "localtime")))
	var names []string
	tr := tar.NewReader(bytes.NewReader(must.Get(etcOf(dir))(t)))
	for h, err := tr.Next(); err == nil; h, err = tr.Next() {
		names = append(names, h.Name)
	}
	want := "etc/ etc/localtime etc/php etc/php/8 etc/php/8/cli etc/php/8/cli/file etc/python3.11 etc/services " +
		"etc/ssl etc/ssl/certs etc/ssl/certs/file etc/ssl/file"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the copy has %s\nwant         %s", got, want)
	}
}

func TestAProfileThatIsNotUnderstoodIsRefused(t *testing.T) {
	const rules = `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"action":"SCMP_ACT_ALLOW",`
	for text, want := range map[string]string{
		`{`:                                "read the seccomp profile",
		`{"defaultAction":"SCMP_ACT_LOG"}`: "the action SCMP_ACT_LOG is not known",
		rules + `"names":["socket"],"args":[{"index":0,"op":"SCMP_CMP_GT"}]}]}`: "is not known",
		rules + `"names":["read","read"]}]}`:                                    "decides twice about read",
	} {
		if _, err := filterFor(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
