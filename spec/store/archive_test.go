package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

func TestPackedArchiveInstallsWithTheSameHash(t *testing.T) {
	dir := source(t, "1.2.0", map[string]string{"connector.wasm": "code", "README.md": "left out"})
	var one, two bytes.Buffer
	packed := must.Get(Pack(dir, &one))(t)
	if _, err := Pack(dir, &two); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("packing twice gives different bytes (%v)", err)
	}
	file := filepath.Join(t.TempDir(), "aileron.tar.gz")
	must.Do(t, os.WriteFile(file, one.Bytes(), 0o600))
	if in := install(t, open(t), file); in.Connector.Hash != packed.Hash {
		t.Errorf("the archive has the hash %s, the directory %s", in.Connector.Hash, packed.Hash)
	}
}

func TestArchivesThatAreRefused(t *testing.T) {
	m, sp := entry{name: spec.ManifestFile, data: manifest}, entry{name: spec.SpecFile, data: connectorSpec}
	in := func(dir string, e entry) entry { return entry{name: dir + e.name, data: e.data} }
	for _, c := range []struct {
		name    string
		entries []entry
		want    string
	}{
		{"nothing", nil, "manifest.toml: it is missing"},
		{"one file", []entry{m}, spec.SpecFile + ": it is missing"},
		{"a way out", []entry{m, sp, {name: "../evil", data: "x"}}, `"../evil" has a name that leads out`},
		{"a way out in the middle", []entry{m, sp, {name: "a/../../evil", data: "x"}}, "has a name that leads out"},
		{"an absolute path", []entry{m, sp, {name: "/etc/passwd", data: "x"}}, `"/etc/passwd" has an absolute name`},
		{"a symlink", []entry{m, {name: spec.SpecFile, kind: tar.TypeSymlink, link: "/etc/passwd"}},
			spec.SpecFile + `" is a link`},
		{"a hard link", []entry{m, {name: spec.SpecFile, kind: tar.TypeLink, link: spec.ManifestFile}},
			spec.SpecFile + `" is a link`},
		{"a device", []entry{m, sp, {name: "x", kind: tar.TypeChar}}, `"x" is a device or a pipe`},
		{"a disk", []entry{m, sp, {name: "x", kind: tar.TypeBlock}}, `"x" is a device or a pipe`},
		{"a pipe", []entry{m, sp, {name: "x", kind: tar.TypeFifo}}, `"x" is a device or a pipe`},
		{"an odd type", []entry{m, sp, {name: "x", kind: tar.TypeCont}}, `"x" is not a plain file`},
		{"a name of a PAX record", []entry{m, {name: strings.Repeat("é", 20) + "/" + spec.SpecFile, data: "x"}},
			"has its path in a PAX record"},
		{"a file in another case", []entry{m, sp, {name: "Manifest.TOML", data: manifest}},
			`"Manifest.TOML" is another spelling of manifest.toml`},
		{"a file that folds to another", []entry{{name: "\u017Fignature.sig", data: "x"}, m, sp}, "in a PAX record"},
		{"a file twice", []entry{m, sp, m}, "appears twice"},
		{"a file twice by another spelling", []entry{m, sp, {name: "./" + spec.ManifestFile, data: manifest}},
			"appears twice"},
		{"an unknown file", []entry{m, sp, {name: "install.sh", data: "x"}}, "is no file of a connector"},
		{"two directories", []entry{in("a/", m), in("b/", sp)}, "not in the same directory"},
		{"too deep", []entry{in("a/b/", m)}, "not in the same directory"},
		{"too many", slices.Repeat([]entry{{name: "d/", kind: tar.TypeDir}}, maxEntries+1), "more than 64 entries"},
		{"a large spec", []entry{m, {name: spec.SpecFile, data: strings.Repeat(" ", maxText+1)}}, "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := archive(t, c.entries)
			if _, err := Read(file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Read = %v, want %q", err, c.want)
			}
		})
	}
	for name, entries := range map[string][]entry{
		"in a directory": {
			{name: "./x/", kind: tar.TypeDir}, {name: "x/README.md", data: "hi"}, in("x/", m), in("x/", sp),
		},
		"as tar makes it": {
			{name: "./", kind: tar.TypeDir}, in("./", m), {name: "./LICENSE", data: "hi"}, in("./", sp),
		},
	} {
		if _, err := Read(archive(t, entries)); err != nil {
			t.Errorf("an archive %s: %v", name, err)
		}
	}
	for name, data := range map[string]string{
		"with a comment for all": "comment", "with a path for all": "path",
	} {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		files := tar.NewWriter(zip)
		err := files.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header",
			PAXRecords: map[string]string{data: "x"}})
		must.Do(t, errors.Join(err, addFiles(files, m, sp), files.Close(), zip.Close()))
		if _, err := readArchive(&out); (err == nil) != (data == "comment") ||
			err != nil && !strings.Contains(err.Error(), "has its path in a PAX record") {
			t.Errorf("an archive %s: %v", name, err)
		}
	}
	junk := filepath.Join(t.TempDir(), "x.tar.gz")
	must.Do(t, os.WriteFile(junk, []byte("junk"), 0o600))
	for _, src := range []string{junk, filepath.Join(t.TempDir(), "none"), os.DevNull} {
		if _, err := Read(src); err == nil || errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Read(%s) = %v", src, err)
		}
	}
}

type entry struct {
	name, data, link string
	kind             byte
}

func archive(t *testing.T, entries []entry) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	must.Do(t, errors.Join(addFiles(files, entries...), files.Close(), zip.Close()))
	file := filepath.Join(t.TempDir(), "aileron.tar.gz")
	must.Do(t, os.WriteFile(file, out.Bytes(), 0o600))
	return file
}

func addFiles(files *tar.Writer, entries ...entry) error {
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		header := tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: 0o644, Size: int64(len(e.data))}
		if err := files.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := io.WriteString(files, e.data); err != nil {
			return err
		}
	}
	return nil
}

// What a person allowed on one machine is not for others: an archive is how connectors are published.
func TestAnArchiveHoldsNoConnectorOfOneMachine(t *testing.T) {
	const want = "installed from a directory only"
	local := strings.NewReplacer("github://acme/tracker", "local://allowed/tracker")
	dir := t.TempDir()
	for name, text := range map[string]string{spec.ManifestFile: manifest, spec.SpecFile: connectorSpec} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(local.Replace(text)), 0o600))
	}
	if _, err := Pack(dir, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("packed: %v", err)
	}
	file := archive(t, []entry{
		{name: spec.ManifestFile, data: local.Replace(manifest)}, {name: spec.SpecFile, data: local.Replace(connectorSpec)},
	})
	if _, err := open(t).Install(t.Context(), file, InstallOptions{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("installed from an archive: %v", err)
	}
	if in := install(t, open(t), dir); !in.Connector.FQN.IsLocal() {
		t.Errorf("installed from a directory as %s", in.Connector.FQN)
	}
}
