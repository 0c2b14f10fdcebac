package matrix

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// file is one file of a package.
type file struct {
	name string
	data []byte
}

// blob is what a package of that size carries, and what its client has to
// bring into the box.
func (o *origin) blob(size string) []byte {
	if size == "big" {
		return o.big
	}
	return []byte("a small package of the matrix\n")
}

// packaged are the clients that bring a package, or an object, of their own
// service.
var packaged = map[string]struct{}{"git": {}, "npm": {}, "npm11-node24": {}, "bun-add": {}, "pip": {}, "go-mod": {},
	"cargo": {}, "apt": {}, "boto3": {}, "aws": {}}

var sizes = []string{"small", "big"}

func tgz(t *testing.T, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := must.Get(gzip.NewWriterLevel(&out, gzip.NoCompression))(t)
	tw := tar.NewWriter(zw)
	for _, f := range files {
		must.Do(t, tw.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data)),
			Format: tar.FormatUSTAR}))
		must.Get(tw.Write(f.data))(t)
	}
	must.Do(t, tw.Close())
	must.Do(t, zw.Close())
	return out.Bytes()
}

func zipped(t *testing.T, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for _, f := range files {
		w := must.Get(zw.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store}))(t)
		must.Get(w.Write(f.data))(t)
	}
	must.Do(t, zw.Close())
	return out.Bytes()
}

func sha256hex(data []byte) string { return wantOf(data, "").sha }

// files serves fixed bytes by path.
type files map[string][]byte

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, ok := f[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/simple/"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	case bytes.HasPrefix(data, []byte("{")):
		w.Header().Set("Content-Type", "application/json")
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = w.Write(data)
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data := must.Get(json.Marshal(v))(t)
	return data
}

// npm is the npm registry.
func (o *origin) npm(t *testing.T, host string) files {
	served := files{}
	for _, size := range sizes {
		name := "matrix-" + size
		archive := tgz(t, file{"package/package.json", fmt.Appendf(nil, `{"name":%q,"version":"1.0.0"}`, name)},
			file{"package/blob.bin", o.blob(size)})
		path := "/" + name + "/-/" + name + "-1.0.0.tgz"
		one, strong := sha1.Sum(archive), sha512.Sum512(archive)
		served[path] = archive
		served["/"+name] = marshal(t, map[string]any{"name": name, "dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{"name": name, "version": "1.0.0", "dist": map[string]string{
				"tarball": "https://" + host + path, "shasum": hex.EncodeToString(one[:]),
				"integrity": "sha512-" + base64.StdEncoding.EncodeToString(strong[:])}}}})
	}
	return served
}

// pypi is Python's package index, and wheels where its files are.
func (o *origin) pypi(t *testing.T) (index, wheels files) {
	index, wheels = files{}, files{}
	for _, size := range sizes {
		module := "matrix_" + size
		info := module + "-1.0.dist-info/"
		wheel := zipped(t, file{module + "/__init__.py", nil}, file{module + "/blob.bin", o.blob(size)},
			file{info + "METADATA", []byte("Metadata-Version: 2.1\nName: matrix-" + size + "\nVersion: 1.0\n")},
			file{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: matrix\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
			file{info + "RECORD", []byte(module + "/__init__.py,,\n" + module + "/blob.bin,,\n" + info + "METADATA,,\n" + info +
				"WHEEL,,\n" + info + "RECORD,,\n")})
		path := "/packages/" + module + "-1.0-py3-none-any.whl"
		wheels[path] = wheel
		index["/simple/matrix-"+size+"/"] = fmt.Appendf(nil,
			`<!DOCTYPE html><html><body><a href="https://files.pythonhosted.org%s#sha256=%s">%s</a></body></html>`,
			path, sha256hex(wheel), path[len("/packages/"):])
	}
	return index, wheels
}

// goproxy is the Go module proxy.
func (o *origin) goproxy(t *testing.T) files {
	served := files{}
	for _, size := range sizes {
		name := "matrix.example/" + size
		mod := []byte("module " + name + "\n\ngo 1.19\n")
		at := name + "@v1.0.0/"
		served["/"+name+"/@v/v1.0.0.info"] = []byte(`{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`)
		served["/"+name+"/@v/v1.0.0.mod"] = mod
		served["/"+name+"/@v/v1.0.0.zip"] = zipped(t, file{at + "go.mod", mod},
			file{at + "matrix.go", []byte("package matrix\n")}, file{at + "blob.bin", o.blob(size)})
	}
	return served
}

// crates is crates.io: its sparse index, and its crates.
func (o *origin) crates(t *testing.T) (index, crates files) {
	index, crates = files{"/config.json": []byte(`{"dl":"https://static.crates.io/crates","api":"https://crates.io"}`)},
		files{}
	for _, size := range sizes {
		name := "matrix-" + size
		dir := name + "-1.0.0/"
		crate := tgz(t, file{dir + "Cargo.toml",
			fmt.Appendf(nil, "[package]\nname = %q\nversion = \"1.0.0\"\nedition = \"2021\"\n", name)},
			file{dir + "src/lib.rs", nil}, file{dir + "blob.bin", o.blob(size)})
		crates["/crates/"+name+"/1.0.0/download"] = crate
		index["/ma/tr/"+name] = append(marshal(t,
			map[string]any{"name": name, "vers": "1.0.0", "deps": []any{}, "cksum": sha256hex(crate),
				"features": map[string]any{}, "yanked": false}), '\n')
	}
	return index, crates
}

// debian is a Debian archive. What it calls packages are bytes: apt-get
// download measures and hashes them, and does not look inside.
func (o *origin) debian() http.Handler {
	served := files{}
	var packages strings.Builder
	for _, size := range sizes {
		path := "pool/main/m/matrix-" + size + "_1.0_all.deb"
		served["/debian/"+path] = o.blob(size)
		fmt.Fprintf(&packages, "Package: matrix-%s\nVersion: 1.0\nArchitecture: all\nMaintainer: matrix "+
			"<matrix@example.com>\nDescription: matrix\nFilename: %s\nSize: %d\nSHA256: %s\n\n",
			size, path, len(o.blob(size)), sha256hex(o.blob(size)))
	}
	release := "Origin: Debian\nSuite: matrix\nCodename: matrix\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nArchitectures: " +
		"amd64 arm64 all\nComponents: main\nSHA256:\n"
	for _, arch := range []string{"amd64", "arm64"} {
		path := "main/binary-" + arch + "/Packages"
		served["/debian/dists/matrix/"+path] = []byte(packages.String())
		release += fmt.Sprintf(" %s %d %s\n", sha256hex([]byte(packages.String())), packages.Len(), path)
	}
	served["/debian/dists/matrix/Release"] = []byte(release)
	return served
}

// s3 is Amazon's object store, as far as one object goes.
func (o *origin) s3() files {
	served := files{}
	for _, size := range sizes {
		served["/matrix/"+size] = o.blob(size)
	}
	return served
}
