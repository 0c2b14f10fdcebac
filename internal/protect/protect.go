// Package protect keeps secrets of this process out of core dumps, out of /proc and out of the environment of its
// children. Open [ProtectProcess] first.
package protect

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/system"
)

// Protection is what [ProtectProcess] took from the process: its children do not get it, or get it back.
type Protection struct {
	secrets map[string]string // variables that are no longer in the environment
	core    unix.Rlimit       // the core limit that aileron was started with
}

// SecretVariables returns the names of the environment variables that hold a secret.
func SecretVariables() []string {
	return []string{"AILERON_VAULT_PASSPHRASE", "AILERON_VAULT_NEW_PASSPHRASE"}
}

// WithoutSecrets returns an environment without the variables that hold a secret.
func WithoutSecrets(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(SecretVariables(), name)
	})
}

// ProtectProcess keeps the secrets of this process from other processes of the same user, above all from those that
// aileron starts. It must be called first in main. The process is made undumpable: only a process with CAP_SYS_PTRACE
// can read its environment and memory, attach to it or take its descriptors, and no core file of it is written. The
// secrets in its environment move into the result, so that no child inherits them, whichever package starts it.
//
// execve resets the dumpable attribute: the programs that aileron starts are not affected.
func ProtectProcess() (*Protection, error) {
	p := &Protection{secrets: map[string]string{}}
	// An undumpable process's /proc files are root's: opened before.
	mem, memErr := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err := system.Undumpable(); err != nil {
		return nil, fmt.Errorf("make this process undumpable: %w", err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &p.core); err != nil {
		return nil, fmt.Errorf("read the core limit: %w", err)
	}
	if err := p.limitCore(0); err != nil {
		return nil, fmt.Errorf("set the core limit to 0: %w", err)
	}
	for _, name := range SecretVariables() {
		if value, ok := os.LookupEnv(name); ok {
			p.secrets[name] = value
			if err := os.Unsetenv(name); err != nil {
				return nil, fmt.Errorf("take %s out of the environment: %w", name, err)
			}
		}
	}
	if memErr == nil {
		_ = eraseEnvironment(mem, SecretVariables()) // best effort: only root can read the block
		_ = mem.Close()
	}
	return p, nil
}

// limitCore sets the soft limit. The hard one stays: the child of aileron run gets the original limits back.
func (p *Protection) limitCore(soft uint64) error {
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: soft, Max: p.core.Max})
}

// Getenv is [os.Getenv] for a protected process.
func (p *Protection) Getenv(name string) string {
	if value, ok := p.secrets[name]; ok {
		return value
	}
	return os.Getenv(name)
}

// Start starts a person's command with the core limit of the shell from which aileron was started. This process stays
// undumpable meanwhile. A nil protection changes nothing.
func (p *Protection) Start(cmd *exec.Cmd) error {
	if p == nil {
		return cmd.Start()
	}
	if err := p.limitCore(p.core.Cur); err != nil {
		return fmt.Errorf("restore the core limit: %w", err)
	}
	err := cmd.Start()
	return errors.Join(err, p.limitCore(0))
}

// eraseEnvironment overwrites the values of variables in the block that the kernel shows as /proc/PID/environ.
// os.Unsetenv changes a copy of it.
func eraseEnvironment(mem *os.File, names []string) error {
	at, size, err := environmentBlock()
	if err != nil {
		return err
	}
	block := make([]byte, size)
	if _, err := mem.ReadAt(block, at); err != nil {
		return err
	}
	offset := at
	for entry := range bytes.SplitSeq(block, []byte{0}) {
		name, value, _ := bytes.Cut(entry, []byte("="))
		if slices.Contains(names, string(name)) {
			if _, err := mem.WriteAt(make([]byte, len(value)), offset+int64(len(name))+1); err != nil {
				return err
			}
		}
		offset += int64(len(entry)) + 1
	}
	return nil
}

// environmentBlock returns where the kernel put the environment at the start of this process: env_start and env_end of
// proc(5), the fields 50 and 51.
func environmentBlock() (at, size int64, err error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	if len(fields) < 49 {
		return 0, 0, errors.New("/proc/self/stat has no env_start and env_end")
	}
	at, err = strconv.ParseInt(fields[47], 10, 64)
	end, endErr := strconv.ParseInt(fields[48], 10, 64)
	if err = errors.Join(err, endErr); err != nil || end <= at || end-at > 32<<20 {
		return 0, 0, errors.Join(err, errors.New("/proc/self/stat has no environment"))
	}
	return at, end - at, nil
}

// KeepFromChildren makes the descriptor that path names, as /dev/fd/3 does, close when a child is started: a secret
// that was read from it could be read again.
func KeepFromChildren(path string) {
	for _, dir := range []string{"/dev/fd", "/proc/self/fd"} {
		if filepath.Dir(path) != dir {
			continue
		}
		if fd, err := strconv.Atoi(filepath.Base(path)); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
