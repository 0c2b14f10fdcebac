package native

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// What a sandbox sees of this host is a list of what is allowed: programs, libraries and their data. It is the same on
// every host that has them, and read-only.

// systemDirs are directories of this host that a sandbox has. One that is a link, such as /bin, is one in the sandbox.
// The first is where the sandbox's own files lie among this host's.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// etcNames are what a sandbox has of /etc: what programs and libraries need to run, and nothing of this host's users,
// services, network and secrets.
var etcNames = []string{
	"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts", "gai.conf",
	"host.conf", "inputrc", "java", "javascript-common", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
	"locale.conf", "localtime", "lsb-release", "magic", "magic.mime", "mailcap", "mime.types", "networks", "nsswitch.conf",
	"openssl", "os-release", "perl", "php", "php.d", "php.ini", "pki", "profile", "protocols", "python3",
	"redhat-release", "rpc", "services", "shells", "ssl", "system-release", "terminfo", "timezone", "vim", "xdg",
}

// etcServices are settings of services among them.
var etcServices = []string{"etc/php/*/apache2", "etc/php/*/cgi", "etc/php/*/fpm"}

// etcPrefixes begin further names, with a version: java-17-openjdk, python3.11.
var etcPrefixes = []string{"java-", "python3."}

// Bounds of what is copied of /etc.
const (
	maxEtcFile = 8 << 20
	maxEtc     = 64 << 20
	maxEtcDeep = 16
)

// HostEtc returns what a sandbox has of this host's /etc, as a tar archive of it. It has files that every user of this
// host may read, and no others, even if root runs this.
func HostEtc() ([]byte, error) { return etcOf("/etc") }

func etcOf(dir string) ([]byte, error) {
	var out bytes.Buffer
	p := &packer{tw: tar.NewWriter(&out), room: maxEtc}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read this host's /etc: %w", err)
	}
	// As engines' archives do, it begins with the directory: what looks into it finds nothing otherwise.
	p.err = p.tw.WriteHeader(&tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755})
	for _, entry := range entries {
		name := entry.Name()
		versioned := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if slices.Contains(etcNames, name) || slices.ContainsFunc(etcPrefixes, versioned) {
			p.add(filepath.Join(dir, name), path.Join("etc", name), 0)
		}
	}
	if err := errors.Join(p.err, p.tw.Close()); err != nil {
		return nil, fmt.Errorf("copy this host's /etc: %w", err)
	}
	return out.Bytes(), nil
}

// packer packs files that everyone may read. What cannot be read is left out.
type packer struct {
	tw   *tar.Writer
	room int64
	err  error // of writing, or for want of room
}

func (p *packer) add(at, name string, deep int) {
	info, err := os.Lstat(at)
	isService := func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }
	if err != nil || p.err != nil || deep > maxEtcDeep || slices.ContainsFunc(etcServices, isService) {
		return
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm() &^ 0o022)}
	switch public := info.Mode().Perm()&0o004 != 0; {
	case info.Mode()&fs.ModeSymlink != 0:
		link, err := os.Readlink(at)
		if err == nil {
			h.Typeflag, h.Linkname = tar.TypeSymlink, link
			p.err = p.tw.WriteHeader(h)
		}
	case info.IsDir() && public && info.Mode().Perm()&0o001 != 0:
		h.Typeflag = tar.TypeDir
		p.err = p.tw.WriteHeader(h)
		entries, _ := os.ReadDir(at)
		for _, entry := range entries {
			p.add(filepath.Join(at, entry.Name()), path.Join(name, entry.Name()), deep+1)
		}
	case info.Mode().IsRegular() && public && info.Size() <= maxEtcFile:
		p.file(at, h)
	}
}

func (p *packer) file(at string, h *tar.Header) {
	f, err := os.Open(at)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 {
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEtcFile))
	if err != nil {
		return
	}
	if p.room -= int64(len(data)); p.room < 0 {
		p.err = fmt.Errorf("it has more than %d MiB", maxEtc>>20)
		return
	}
	h.Size = int64(len(data))
	if p.err = p.tw.WriteHeader(h); p.err == nil {
		_, p.err = p.tw.Write(data)
	}
}

// Shows reports whether a sandbox has a path of this host, without links, because it is the system's.
func Shows(at string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") })
}
