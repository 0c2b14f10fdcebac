package services

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/sumdb/note"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// addRegistries adds every registry but RubyGems.org.
func (o *Origin) addRegistries(t *testing.T) {
	t.Helper()
	o.services["registry.npmjs.org"] = Unguarded(npm(t))
	index, wheels := pypi(t)
	o.services["pypi.org"], o.services["files.pythonhosted.org"] = Unguarded(index), Unguarded(wheels)
	sparse, crates := cargo(t)
	o.services["index.crates.io"], o.services["static.crates.io"] = Unguarded(sparse), Unguarded(crates)
	o.addGo(t)
	central := Unguarded(maven(t))
	o.services["repo.maven.apache.org"], o.services["repo1.maven.org"] = central, central
	o.services["deb.debian.org"] = Unguarded(archive("/debian"))
	o.services["security.debian.org"] = Unguarded(archive("/debian-security"))
	o.services["archive.ubuntu.com"] = Unguarded(archive("/ubuntu"))
	o.services["dl-cdn.alpinelinux.org"] = text("of Alpine")
}

type file struct{ name, data string }

func tgz(t *testing.T, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	for _, f := range files {
		must.Do(t, tw.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data))}))
		must.Get(tw.Write([]byte(f.data)))(t)
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
		w := must.Get(zw.Create(f.name))(t)
		must.Get(w.Write([]byte(f.data)))(t)
	}
	must.Do(t, zw.Close())
	return out.Bytes()
}

func sha256hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data := must.Get(json.Marshal(v))(t)
	return data
}

// npm is the npm registry, with a package that has a scope.
func npm(t *testing.T) served {
	s := served{}
	for _, name := range []string{"left", "@acme/right"} {
		data := tgz(t, file{"package/package.json", fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)},
			file{"package/blob", "of npm"})
		path := "/" + name + "/-/" + name[strings.LastIndexByte(name, '/')+1:] + "-1.0.0.tgz"
		one, strong := sha1.Sum(data), sha512.Sum512(data)
		s[path] = data
		s["/"+name] = marshal(t, map[string]any{"name": name, "dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{"name": name, "version": "1.0.0", "dist": map[string]string{
				"tarball": "https://registry.npmjs.org" + path, "shasum": hex.EncodeToString(one[:]),
				"integrity": "sha512-" + base64.StdEncoding.EncodeToString(strong[:])}}}})
	}
	return s
}

// pypi is Python's package index, and where its files are.
func pypi(t *testing.T) (index, wheels served) {
	const info = "acme_tool-1.0.dist-info/"
	wheel := zipped(t, file{"acme_tool/__init__.py", ""},
		file{info + "METADATA", "Metadata-Version: 2.1\nName: acme-tool\nVersion: 1.0\n"},
		file{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		file{info + "RECORD", "acme_tool/__init__.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"})
	path := "/packages/ab/cd/0123/acme_tool-1.0-py3-none-any.whl"
	page := fmt.Sprintf("<!DOCTYPE html><html><body>"+
		`<a href="https://files.pythonhosted.org%s#sha256=%s">%s</a></body></html>`,
		path, sha256hex(wheel), filepath.Base(path))
	return served{"/simple/acme-tool/": []byte(page)}, served{path: wheel}
}

// cargo is crates.io: its sparse index, and its crates.
func cargo(t *testing.T) (index, crates served) {
	crate := tgz(t, file{"acme-tool-1.0.0/Cargo.toml",
		"[package]\nname = \"acme-tool\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"},
		file{"acme-tool-1.0.0/src/lib.rs", ""}, file{"acme-tool-1.0.0/blob", "of crates.io"})
	entry := marshal(t, map[string]any{"name": "acme-tool", "vers": "1.0.0", "deps": []any{}, "cksum": sha256hex(crate),
		"features": map[string]any{}, "yanked": false})
	return served{"/config.json": []byte(`{"dl":"https://static.crates.io/crates","api":"https://crates.io"}`),
		"/ac/me/acme-tool": append(entry, '\n')}, served{"/crates/acme-tool/1.0.0/download": crate}
}

// maven is Maven Central: the parent of a project, an extension of Maven, and what Maven adds to each.
func maven(t *testing.T) served {
	s := served{}
	for _, a := range []struct{ group, name, version, packaging string }{
		{"com.acme", "parent", "1.0", "pom"}, {"com.acme", "tool", "1.0", "jar"},
		{"org.codehaus.plexus", "plexus-utils", "1.1", "jar"},
	} {
		at := fmt.Sprintf("/maven2/%s/%s/%s/%s-%s.", strings.ReplaceAll(a.group, ".", "/"), a.name, a.version, a.name,
			a.version)
		s[at+"pom"] = fmt.Appendf(nil, `<project><modelVersion>4.0.0</modelVersion><groupId>%s</groupId>`+
			`<artifactId>%s</artifactId><version>%s</version><packaging>%s</packaging></project>`,
			a.group, a.name, a.version, a.packaging)
		s[at+"jar"] = zipped(t, file{"blob", "of Maven"})
		for _, kind := range []string{"pom", "jar"} {
			sum := sha1.Sum(s[at+kind])
			s[at+kind+".sha1"] = []byte(hex.EncodeToString(sum[:]))
		}
	}
	return s
}

// addGo adds the module proxy, the bucket to which it redirects for archives,
// and a checksum database with a key of its own.
func (o *Origin) addGo(t *testing.T) {
	t.Helper()
	proxy, bucket := http.NewServeMux(), served{}
	sums := map[string]string{}
	for _, path := range []string{"github.com/acme/Mod", "golang.org/acme/tool"} {
		escaped := strings.ReplaceAll(path, "M", "!m")
		mod := "module " + path + "\n\ngo 1.19\n"
		data := zipped(t, file{path + "@v1.0.0/go.mod", mod}, file{path + "@v1.0.0/mod.go", "package mod\n"})
		object := "/proxy-golang-org-prod/1a-" + strings.ReplaceAll(escaped, "/", ":") + "-v1.0.0.zip"
		bucket[object] = data
		sums[path] = sumsOf(t, path, mod, data)
		files := served{"/" + escaped + "/@v/v1.0.0.info": []byte(`{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`),
			"/" + escaped + "/@v/v1.0.0.mod": []byte(mod)}
		proxy.Handle("/"+escaped+"/", files)
		proxy.Handle("/"+escaped+"/@v/v1.0.0.zip",
			redirect("https://storage.googleapis.com"+object+"?Expires=1&Signature=s"))
	}
	skey, vkey, err := note.GenerateKey(rand.Reader, "sum.golang.org")
	if err != nil {
		t.Fatal(err)
	}
	o.SumDB = vkey
	database := sumdb.NewTestServer(skey, func(path, version string) ([]byte, error) {
		if sum := sums[path]; sum != "" && version == "v1.0.0" {
			return []byte(sum), nil
		}
		return nil, fmt.Errorf("no module %s@%s here: %w", path, version, os.ErrNotExist)
	})
	o.services["proxy.golang.org"] = Unguarded(proxy)
	o.services["sum.golang.org"] = Unguarded(sumdb.NewServer(database))
	buckets := http.NewServeMux()
	buckets.Handle("/proxy-golang-org-prod/", bucket)
	buckets.Handle("/gitlab-gprd-lfs-objects/", text(lfsObject))
	o.services["storage.googleapis.com"] = Unguarded(buckets)
}

// sumsOf returns the lines of go.sum for a module.
func sumsOf(t *testing.T, path, mod string, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mod.zip")
	write(t, string(data), name)
	sum := must.Get(dirhash.HashZip(name, dirhash.Hash1))(t)
	one := sha256.Sum256([]byte(mod))
	all := sha256.Sum256(fmt.Appendf(nil, "%x  go.mod\n", one))
	return fmt.Sprintf("%s v1.0.0 %s\n%s v1.0.0/go.mod h1:%s\n", path, sum, path,
		base64.StdEncoding.EncodeToString(all[:]))
}

// archive is an archive of Debian's kind. What it calls a package is bytes:
// apt-get download measures and hashes them, and does not look inside.
func archive(root string) served {
	const body, name = "of an archive\n", "pool/main/a/acme-tool_1.0~rc1_all.deb"
	packages := fmt.Sprintf("Package: acme-tool\nVersion: 1.0~rc1\nArchitecture: all\nMaintainer: a <a@example.com>\n"+
		"Description: a\nFilename: %s\nSize: %d\nSHA256: %s\n\n", name, len(body), sha256hex([]byte(body)))
	release := "Origin: a\nSuite: bookworm\nCodename: bookworm\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nArchitectures: " +
		"amd64 arm64 all\nComponents: main\nSHA256:\n"
	s := served{root + "/" + name: []byte(body)}
	for _, arch := range []string{"amd64", "arm64"} {
		path := "main/binary-" + arch + "/Packages"
		s[root+"/dists/bookworm/"+path] = []byte(packages)
		release += fmt.Sprintf(" %s %d %s\n", sha256hex([]byte(packages)), len(packages), path)
	}
	s[root+"/dists/bookworm/Release"] = []byte(release)
	return s
}

// addGems adds RubyGems.org, with a gem and an index that the image's own gem
// makes.
func (o *Origin) addGems(t *testing.T, image string) {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"lib", "site/gems"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	write(t, "ACME = 1\n", dir, "lib", "acme.rb")
	write(t, "Gem::Specification.new do |s|\n s.name='acme-tool'\n s.version='1.0.0'\n s.summary='a'\n s.authors=['a']\n"+
		" s.files=['lib/acme.rb']\nend\n", dir, "acme.gemspec")
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "podman", "run", "--rm", "--network", "none", "--volume", dir+":/gem", "--workdir",
		"/gem", image, "sh", "-euc", "gem build -q acme.gemspec -o site/gems/acme-tool-1.0.0.gem; cd site; "+
			"gem generate_index -q --directory .; chmod -R a+rX .")
	cmd.Env = harness.EngineEnv(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make a gem: %v\n%s", err, out)
	}
	gem := must.Get(os.ReadFile(filepath.Join(dir, "site/gems/acme-tool-1.0.0.gem")))(t)
	site := http.NewServeMux()
	site.Handle("/", http.FileServer(http.Dir(filepath.Join(dir, "site"))))
	info := []byte("---\n1.0.0 |checksum:" + sha256hex(gem) + "\n")
	site.Handle("/info/", served{"/info/acme-tool": info})
	site.Handle("/versions", served{"/versions": fmt.Appendf(nil,
		"created_at: 2026-01-01T00:00:00Z\n---\nacme-tool 1.0.0 %x\n", md5.Sum(info))})
	o.services["rubygems.org"], o.services["index.rubygems.org"] = Unguarded(site), Unguarded(site)
}
