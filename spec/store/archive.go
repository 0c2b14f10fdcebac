package store

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// isDocument reports whether a file is for people and grants nothing.
func isDocument(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	return slices.Contains([]string{"readme", "license", "licence", "notice", "changelog", "copying"}, stem)
}

// Pack writes the connector in dir to w as an aileron.tar.gz. The same connector
// results in the same bytes.
func Pack(dir string, w io.Writer) (*spec.Connector, error) { return PackSigned(dir, w, nil) }

// Carried is what a package carries beside what is hashed; nil is none.
type Carried struct{ Signature, Trust []byte }

// PackSigned is [Pack] with the signature.sig that sign returns for the connector and
// for what dir carries; nil is none. The vouches in dir go into the archive as they are.
func PackSigned(dir string, w io.Writer, sign func(c *spec.Connector, old Carried) ([]byte, error),
) (*spec.Connector, error) {
	c, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	connector, err := c.loadNew()
	if err == nil {
		err = c.isPublic()
	}
	if err == nil && sign != nil {
		err = c.sign(connector, sign)
	}
	if err != nil {
		return nil, err
	}
	zip := gzip.NewWriter(w)
	files := tar.NewWriter(zip)
	for _, name := range knownFiles() {
		data, ok := c[name]
		if !ok {
			continue
		}
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR}
		if err := files.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := files.Write(data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := errors.Join(files.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("pack the connector: %w", err)
	}
	return connector, nil
}

const (
	maxEntries  = 64                    // of an archive
	maxUnpacked = maxBinary + 8*maxText // bytes
	maxRatio    = 100                   // of the unpacked bytes to those of the archive
	ratioFrom   = 8 << 20               // unpacked bytes from which the ratio counts
	maxPadding  = 64 << 10              // zeros after the end of a tar
)

// ArchiveError is returned for an archive that is broken, or that holds what a
// connector does not.
type ArchiveError struct {
	Entry  string // "" for the archive itself
	Why    string
	Broken bool // it is damaged, or was not received whole
}

func (e *ArchiveError) Error() string {
	if e.Entry == "" {
		return e.Why
	}
	return fmt.Sprintf("the entry %q %s", e.Entry, e.Why)
}

// ErrorClass and ErrorReason return those in the error object of --json.
func (*ArchiveError) ErrorClass() string { return "invalid_request" }
func (e *ArchiveError) ErrorReason() string {
	if e.Broken {
		return "archive_broken"
	}
	return "archive_not_allowed"
}

func broken(why string) error { return &ArchiveError{Why: why, Broken: true} }

// readArchive reads a connector's files from a gzipped tar. They are at its top
// or together in one directory. Links, devices, paths that lead out, duplicates
// and files that a connector does not have are refused, and so is anything that
// another program could read as another archive. Documents such as a README are
// ignored.
func readArchive(r io.Reader) (contents, error) {
	packed := &countingReader{r: r}
	// A bufio.Reader, from which gzip takes no byte beyond its end.
	in := bufio.NewReaderSize(packed, 32<<10)
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, broken("it is not a gzipped tar")
	}
	zip.Multistream(false)
	limited := &boundedReader{r: zip, packed: packed}
	c, err := readTar(tar.NewReader(limited))
	if err == nil {
		err = checkPadding(limited)
	}
	switch {
	case limited.err != nil:
		return nil, limited.err
	case err != nil:
		return nil, err
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, &ArchiveError{Why: "it has data after its end"}
	}
	return c, nil
}

// readTar reads the entries of a tar.
func readTar(files *tar.Reader) (contents, error) {
	c := contents{}
	home := ""
	for range maxEntries {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, broken("it is damaged: " + err.Error())
		}
		if err := checkEntry(h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		dir, name := path.Split(path.Clean(h.Name))
		switch {
		case h.Typeflag == tar.TypeDir, dir == home && isDocument(name):
			continue
		case len(c) == 0 && strings.Count(dir, "/") <= 1:
			home = dir
		case dir != home:
			return nil, &ArchiveError{Entry: h.Name, Why: "is not in the same directory as the others"}
		}
		if isDocument(name) {
			continue
		}
		if err := checkName(h.Name, name); err != nil {
			return nil, err
		}
		if _, twice := c[name]; twice {
			return nil, &ArchiveError{Entry: name, Why: "appears twice"}
		}
		if c[name], err = readLimited(files, name, h.Size); errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, &ArchiveError{Entry: h.Name, Why: "ends early", Broken: true}
		} else if err != nil {
			return nil, &fileError{name, err}
		}
	}
	return nil, &ArchiveError{Why: fmt.Sprintf("it has more than %d entries", maxEntries)}
}

// checkEntry returns an error for an entry that is not a plain file or a directory
// inside the archive.
func checkEntry(h *tar.Header) error {
	refuse := func(why string) error { return &ArchiveError{Entry: h.Name, Why: why} }
	for key := range h.PAXRecords {
		switch {
		case strings.HasPrefix(key, "GNU.sparse."):
			return refuse("is a sparse file")
		case slices.Contains([]string{"path", "linkpath", "size", "hdrcharset"}, key):
			// Programs differ in which of two names or sizes they use.
			return refuse("has its " + key + " in a PAX record")
		}
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader: // git archive writes one, with a comment
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		return refuse("is a link")
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return refuse("is a device or a pipe")
	case tar.TypeGNUSparse:
		return refuse("is a sparse file")
	default:
		return refuse("is not a plain file")
	}
	switch {
	case path.IsAbs(h.Name):
		return refuse("has an absolute name")
	case !filepath.IsLocal(h.Name):
		return refuse("has a name that leads out of the archive")
	}
	return nil
}

// checkName returns an error for a file that a connector does not have.
func checkName(entry, name string) error {
	for _, known := range knownFiles() {
		if name == known {
			return nil
		}
		if strings.EqualFold(name, known) { // one file where names have no case
			return &ArchiveError{Entry: entry, Why: "is another spelling of " + known}
		}
	}
	return &ArchiveError{Entry: entry, Why: "is no file of a connector"}
}

// checkPadding reads to the end of the gzip, whose checksum is verified there. After
// a tar there are only zeros.
func checkPadding(r io.Reader) error {
	rest, err := io.ReadAll(io.LimitReader(r, maxPadding+1))
	if err != nil {
		return err // the reader has a better one
	}
	if len(rest) > maxPadding || len(strings.Trim(string(rest), "\x00")) > 0 {
		return &ArchiveError{Why: "it has data after the end of its tar"}
	}
	return nil
}

// countingReader counts what has been read.
type countingReader struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// boundedReader ends an archive that unpacks to too much.
type boundedReader struct {
	r      io.Reader
	packed *countingReader
	n      int64
	err    error // why the archive is not valid
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	switch {
	case b.n > maxUnpacked:
		b.err = &ArchiveError{Why: fmt.Sprintf("it unpacks to more than %d bytes", int64(maxUnpacked))}
	case b.n > ratioFrom && b.n > maxRatio*b.packed.n:
		b.err = &ArchiveError{Why: fmt.Sprintf("it unpacks to more than %d times its size", maxRatio)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		b.err = broken("it ends early")
	case err != nil && !errors.Is(err, io.EOF):
		b.err = broken("it is damaged: " + err.Error())
	default:
		return n, err
	}
	return 0, b.err
}
