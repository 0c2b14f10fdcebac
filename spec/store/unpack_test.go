package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// tarOf returns a tar that is not compressed.
func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	files := tar.NewWriter(&out)
	must.Do(t, errors.Join(addFiles(files, entries...), files.Close()))
	return out.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	must.Get(zip.Write(data))(t)
	must.Do(t, zip.Close())
	return out.Bytes()
}

// resealed returns a tar whose first header was edited, with the checksum of that.
func resealed(data []byte, edit func(header []byte)) []byte {
	data = slices.Clone(data)
	edit(data[:512])
	copy(data[148:156], "        ")
	sum := 0
	for _, b := range data[:512] {
		sum += int(b)
	}
	copy(data[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return data
}

// An archive that was damaged or not received whole is not read in part, and one that
// has more than the archive is not taken for it.
func TestAnArchiveIsWholeAndNothingElse(t *testing.T) {
	files := []entry{{name: spec.ManifestFile, data: manifest}, {name: spec.SpecFile, data: connectorSpec}}
	plain := tarOf(t, files...)
	whole := gzipped(t, plain)
	flipped := slices.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	for _, c := range []struct {
		name   string
		data   []byte
		want   string
		reason string
	}{
		{"no bytes", nil, "it is not a gzipped tar", "archive_broken"},
		{"not gzip", plain, "it is not a gzipped tar", "archive_broken"},
		{"torn in the middle", whole[:len(whole)/2], "it ends early", "archive_broken"},
		{"torn in the checksum", whole[:len(whole)-5], "it ends early", "archive_broken"},
		{"another checksum", flipped, "invalid checksum", "archive_broken"},
		{"a torn tar", gzipped(t, plain[:600]), `"manifest.toml" ends early`, "archive_broken"},
		{"no tar", gzipped(t, bytes.Repeat([]byte("x"), 1024)), "it is damaged", "archive_broken"},
		{"a larger size than there is", gzipped(t, resealed(plain, func(h []byte) { copy(h[124:], "00000777777\x00") })),
			"ends early", "archive_broken"},
		{"a size of a terabyte", gzipped(t, resealed(plain, func(h []byte) { copy(h[124:], "77777777777\x00") })),
			"ends early", "archive_broken"},
		{"a negative size", gzipped(t, resealed(plain, func(h []byte) { copy(h[124:], "\xff\xff\xff\xff\xff\xff") })),
			"it is damaged", "archive_broken"},
		{"a second gzip", slices.Concat(whole, whole), "it has data after its end", "archive_not_allowed"},
		{"a byte too many", slices.Concat(whole, []byte{0}), "it has data after its end", "archive_not_allowed"},
		{"a second tar", gzipped(t, slices.Concat(plain, plain)), "data after the end of its tar", "archive_not_allowed"},
		{"endless zeros", gzipped(t, slices.Concat(plain, make([]byte, 2*maxPadding))), "data after the end of its tar",
			"archive_not_allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readArchive(bytes.NewReader(c.data))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("readArchive = %v, want %q", err, c.want)
			}
			var refused *ArchiveError
			if c.reason != "" && (!errors.As(err, &refused) || refused.ErrorReason() != c.reason) {
				t.Errorf("its reason is not %s: %#v", c.reason, err)
			}
		})
	}
	padded := gzipped(t, slices.Concat(plain, make([]byte, 8192))) // tar fills its last record
	if _, err := readArchive(bytes.NewReader(padded)); err != nil {
		t.Errorf("an archive with the padding of tar: %v", err)
	}
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// A small archive cannot fill the memory or the disk.
func TestAnArchiveThatUnpacksToTooMuchIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		entry string
		size  int64
		noise int64 // random bytes in front, so that the ratio is not what it is refused for
		want  string
	}{
		"by its ratio":        {"connector.bin", 32 << 20, 0, "it unpacks to more than 100 times its size"},
		"in a file to ignore": {"README.md", 32 << 20, 0, "it unpacks to more than 100 times its size"},
		"of a file":           {"connector.bin", maxBinary + 1, 2 << 20, "larger than"},
		"of files to ignore":  {"README.md", maxUnpacked, 2 << 20, "it unpacks to more than"},
		"of a manifest":       {spec.ManifestFile, maxText + 1, 0, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			in, out := io.Pipe()
			go func() {
				zip, _ := gzip.NewWriterLevel(out, gzip.BestCompression)
				files := tar.NewWriter(zip)
				err := files.WriteHeader(&tar.Header{Name: "LICENSE", Mode: 0o644, Size: c.noise})
				if err == nil {
					_, err = io.CopyN(files, newNoise(), c.noise)
				}
				if err == nil {
					err = files.WriteHeader(&tar.Header{Name: c.entry, Mode: 0o644, Size: c.size})
				}
				if err == nil {
					_, err = io.CopyN(files, zeros{}, c.size)
				}
				_ = out.CloseWithError(errors.Join(err, files.Close(), zip.Close()))
			}()
			_, err := readArchive(in)
			_ = in.Close()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("readArchive = %v, want %q", err, c.want)
			}
		})
	}
}

// sparse is a tar with a sparse file, as GNU tar writes it in its formats 1.0 and 0.1.
func TestSparseFilesAreRefused(t *testing.T) {
	var out bytes.Buffer
	files := tar.NewWriter(&out)
	err := files.WriteHeader(&tar.Header{Name: spec.ManifestFile, Mode: 0o644, Typeflag: tar.TypeReg,
		PAXRecords: map[string]string{"comment": "GNUxsparse"}})
	must.Do(t, errors.Join(err, files.Close()))
	// archive/tar writes no sparse file: the record gets the name of one, of the same length.
	pax := bytes.Replace(out.Bytes(), []byte("22 comment=GNUxsparse\n"), []byte("22 GNU.sparse.major=9\n"), 1)
	old := resealed(tarOf(t, entry{name: spec.ManifestFile}), func(h []byte) {
		h[156] = tar.TypeGNUSparse
		copy(h[257:], "ustar  \x00")
		clear(h[345:])
		copy(h[386:], "00000000000\x0000000000000\x00")
		copy(h[483:], "00000000000\x00")
	})
	for name, data := range map[string][]byte{"PAX": pax, "GNU": old} {
		if _, err := readArchive(bytes.NewReader(gzipped(t, data))); err == nil ||
			!strings.Contains(err.Error(), "is a sparse file") {
			t.Errorf("%s: readArchive = %v", name, err)
		}
	}
}

// FuzzArchive reads any bytes as an archive: it never panics, and what it accepts has
// only files of a connector, within their bounds.
func FuzzArchive(f *testing.F) {
	files := []entry{{name: spec.ManifestFile, data: manifest}, {name: spec.SpecFile, data: connectorSpec}}
	f.Add(tarOf(f, files...), false)
	f.Add(gzipped(f, tarOf(f, files...)), true)
	f.Add(tarOf(f, append(files, entry{name: "connector.bin", data: "x"}, entry{name: "a", kind: tar.TypeDir})...), false)
	f.Fuzz(func(t *testing.T, data []byte, packed bool) {
		if !packed {
			data = gzipped(t, data)
		}
		c, err := readArchive(bytes.NewReader(data))
		if err != nil {
			return
		}
		for name, content := range c {
			if !slices.Contains(hashedFiles, name) && name != signatureFile && name != trustFile || len(content) > maxBinary {
				t.Errorf("it holds %q with %d bytes", name, len(content))
			}
		}
	})
}

// newNoise returns bytes that cannot be compressed, the same ones each time.
func newNoise() io.Reader { return rand.New(rand.NewSource(1)) }
