package native

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// HostPath returns the PATH of a sandbox: the directories of this process's that the sandbox has, because they are the
// system's, or are places of its mounts or have one. The first of those that it always has is where the session's own
// commands are.
func HostPath(places []string) string {
	has := func(dir string) bool {
		return Shows(dir) || slices.ContainsFunc(places, func(p string) bool { return p == dir || path.Dir(p) == dir })
	}
	var dirs []string
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/bin", "/usr/bin", "/bin") {
		if filepath.IsAbs(dir) && has(filepath.Clean(dir)) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// HostMemory returns the memory of this host in bytes; 0 is unknown.
func HostMemory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	var kib int64
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscanf(string(data), "MemTotal: %d kB", &kib); err != nil {
		return 0
	}
	return kib << 10
}

// FindProgram returns where a sandbox has a program. places are those of its mounts: what is given with a path into one
// of them cannot be known before. The error is a [CommandError].
func FindProgram(name, dirs string, places []string) (string, error) {
	mounted := func(at string) bool {
		return slices.ContainsFunc(places, func(p string) bool { return at == p || strings.HasPrefix(at, p+"/") })
	}
	bad := &CommandError{Command: name, Code: 127, Reason: "this host has no such program among what a sandbox sees"}
	try := []string{name}
	if !strings.Contains(name, "/") {
		try = nil
		for _, dir := range filepath.SplitList(dirs) {
			try = append(try, path.Join("/", dir, name))
		}
	}
	for _, at := range try {
		known := mounted(path.Clean(at))
		if !path.IsAbs(at) || known && strings.Contains(name, "/") {
			return at, nil
		}
		if !Shows(path.Clean(at)) && !known {
			continue
		}
		switch info, err := os.Stat(at); {
		case err != nil:
		case info.IsDir() || info.Mode().Perm()&0o111 == 0:
			bad.Code, bad.Reason = 126, at+" is not executable"
		default:
			return at, nil
		}
	}
	return "", bad
}

// ProgramMounts returns what a sandbox needs of this host to run a program that is on the PATH and not among the
// system's files: its directory, that to which its links lead, and those of its interpreter, read-only. check returns
// an error for what a sandbox may not have; of a directory that it may not, it gets the program alone. written reports
// whether a sandbox may write to a path without links: what is there is passed over, and where a link there leads, or
// the first line of a script, is not a reason to mount anything.
func ProgramMounts(name string, written func(string) bool, check func(Mount) error) (mounts []Mount) {
	const deep = 4 // an interpreter of an interpreter
	for range deep {
		at := findOnHost(name, written)
		if at == "" {
			return mounts
		}
		real, ok := follow(at, written)
		for _, program := range []string{at, real} {
			if program == "" || Shows(program) {
				continue
			}
			m, err := Mount{Target: programDir(program), ReadOnly: true}, error(nil)
			if m.Source, err = filepath.EvalSymlinks(m.Target); err != nil || check(m) != nil {
				m.Source, m.Target = real, program
			}
			if m.Source != "" && !slices.Contains(mounts, m) {
				mounts = append(mounts, m)
			}
		}
		if !ok {
			return mounts
		}
		if name = interpreter(real); name == "" {
			return mounts
		}
	}
	return mounts
}

// findOnHost returns the first program of a name on this process's PATH that lies in no place that is written; "" is
// none.
func findOnHost(name string, written func(string) bool) string {
	if strings.Contains(name, "/") {
		return ""
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		at := filepath.Join(dir, name)
		if _, err := exec.LookPath(at); err != nil || !filepath.IsAbs(at) {
			continue
		}
		if real, ok := follow(filepath.Dir(at), written); ok && !written(filepath.Join(real, name)) {
			return at
		}
	}
	return ""
}

// follow returns where the links of a path lead. It fails if where it leads, or a link on the way, is written.
func follow(at string, written func(string) bool) (real string, ok bool) {
	const most = 255 // links
	links, rest := 0, strings.Split(at, "/")
	for real = "/"; len(rest) > 0; {
		next := filepath.Join(real, rest[0])
		rest = rest[1:]
		if written(next) {
			return "", false
		}
		to, err := os.Readlink(next)
		if err != nil { // no link
			real = next
			continue
		}
		if links++; links > most {
			return "", false
		}
		if filepath.IsAbs(to) {
			real = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return real, true
}

// programDir is the directory of a program: of one of a Node.js package, that of all packages beside it.
func programDir(at string) string {
	if before, _, ok := strings.Cut(at, "/node_modules/"); ok {
		return before + "/node_modules"
	}
	return filepath.Dir(at)
}

// interpreter returns the name of a script's interpreter that is looked for on the PATH, or "".
func interpreter(at string) string {
	f, err := os.Open(at)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 || path.Base(fields[0]) != "env" {
		return ""
	}
	for _, word := range fields[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}
