package body

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// Upload is a file of a call whose content follows the call, and is read while it is sent.
type Upload struct {
	Input string // the input that it is
	Name  string // without a directory; "" is the name of the input
	Type  string // its media type; "" is that of its name
	Size  int64  // in bytes
}

// The bounds of the files that follow a call.
const (
	MaxUploads    = 16
	MaxUploadSize = 1 << 50 // bytes of one
)

// Check returns the first mistake in an upload, nil if there is none.
func (u *Upload) Check() *strictjson.Mistake {
	switch {
	case u.Size < 0 || u.Size > MaxUploadSize:
		return mistake("it is not a number of bytes").In("size")
	case u.Name != "" && badFilename(u.Name) != "":
		return mistake(badFilename(u.Name)).In(keyName)
	case u.Type != "" && !IsMediaType(u.Type):
		return mistake("it is not a media type, such as image/png").In(keyType)
	}
	return nil
}

// file returns what is said about the file.
func (u *Upload) file() File {
	f := File{Name: u.Name, Type: u.Type}
	if f.Name == "" {
		f.Name = u.Input
	}
	if f.Type == "" {
		f.Type = TypeOfName(f.Name)
	}
	return f
}

// typesOfNames are the media types of common extensions. The tables of the system differ from host to host.
var typesOfNames = map[string]string{
	".csv": "text/csv", ".gif": "image/gif", ".gz": "application/gzip", ".html": "text/html", ".jpeg": "image/jpeg",
	".jpg": "image/jpeg", ".json": "application/json", ".jsonl": "application/jsonl", ".m4a": "audio/mp4",
	".md": "text/markdown", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".pdf": "application/pdf", ".png": "image/png",
	".svg": "image/svg+xml", ".tar": "application/x-tar", ".txt": "text/plain", ".wav": "audio/wav",
	".webm": "video/webm", ".webp": "image/webp", ".xml": "application/xml", ".zip": "application/zip",
}

// TypeOfName returns the media type of a file by the extension of its name.
func TypeOfName(name string) string {
	if kind, known := typesOfNames[strings.ToLower(path.Ext(name))]; known {
		return kind
	}
	return ContentType(Raw)
}

// Streamed is a body with files that are read while it is sent. Its size is known from the start, so that a body that
// breaks off is never taken for a whole one.
type Streamed struct {
	before   [][]byte // what stands in front of each file
	uploads  []Upload
	after    []byte
	boundary []byte // that no file may have; nil: there are no parts
}

// Size returns the length of the body.
func (s *Streamed) Size() int64 {
	n := int64(len(s.after))
	for i := range s.before {
		n += int64(len(s.before[i])) + s.uploads[i].Size
	}
	return n
}

// StreamedFile returns the body that is a file and nothing else.
func StreamedFile(u Upload) *Streamed {
	return &Streamed{before: [][]byte{nil}, uploads: []Upload{u}}
}

// JoinStreamed returns the body of parts and of the files that follow the call, in their order behind the parts, and
// its media type with the boundary. salt is what the content of a file cannot have been made for; the same call with
// the same salt has the same boundary, so that what a person approved is what is sent again. It is known from then on,
// so that [Streamed.Reader] refuses a file that has it.
func JoinStreamed(parts []Part, uploads []Upload, salt []byte) (s *Streamed, contentType string) {
	for i := range uploads {
		f := uploads[i].file()
		parts = append(parts, Part{Name: uploads[i].Input, File: &f})
	}
	sum := sha256.New()
	_, _ = sum.Write(salt)
	for _, p := range parts {
		_, _ = fmt.Fprintf(sum, "%q %q", p.head(), p.Value)
	}
	boundary := ""
	for clash := true; clash; {
		boundary = "aileron-" + hex.EncodeToString(sum.Sum(nil)[:20])
		_, _ = sum.Write([]byte(boundary))
		clash = slices.ContainsFunc(parts, func(p Part) bool { return p.has(boundary) })
	}
	s = &Streamed{uploads: uploads, boundary: []byte(boundary)}
	var text []byte
	for i, p := range parts {
		text = append(text, "--"+boundary+"\r\n"+p.head()+"\r\n"...)
		if i >= len(parts)-len(uploads) {
			s.before, text = append(s.before, text), nil
		} else {
			if p.File != nil {
				text = append(text, p.File.Content...)
			}
			text = append(text, p.Value...)
		}
		text = append(text, "\r\n"...)
	}
	s.after = append(text, "--"+boundary+"--\r\n"...)
	return s, ContentType(Multipart) + "; boundary=" + boundary
}

// ErrUpload is the error of a file whose content has not the size that the call names.
var ErrUpload = errors.New("a file has changed while it was sent")

// ErrBoundary is the error of a file that would end its part, and begin others.
var ErrBoundary = errors.New("a file has the boundary of the request that it is sent in")

// Reader returns the body, whose files are the bytes of src, one behind the other and nothing else. It returns an error
// that is an [ErrUpload] where src has fewer bytes or more, before the last byte of a file, and one that is an
// [ErrBoundary] before the last byte of the boundary in a file.
func (s *Streamed) Reader(src io.Reader) io.Reader {
	return &streamReader{body: s, src: src, text: s.before[0]}
}

// streamReader reads a body with files.
type streamReader struct {
	body *Streamed
	src  io.Reader
	text []byte // to be read before the file
	file int    // index of the file
	read int64  // of the file
	tail []byte // the last bytes of the file, in which a boundary may begin
	err  error
}

func (r *streamReader) Read(p []byte) (int, error) {
	for {
		switch {
		case len(r.text) > 0:
			n := copy(p, r.text)
			r.text = r.text[n:]
			return n, nil
		case r.err != nil:
			return 0, r.err
		case len(p) == 0:
			return 0, nil
		case r.file == len(r.body.uploads):
			r.err = io.EOF
		case r.read < r.body.uploads[r.file].Size:
			return r.readFile(p)
		default:
			r.next()
		}
	}
}

// readFile reads of a file. The last bytes of the last one are returned when nothing follows them.
func (r *streamReader) readFile(p []byte) (int, error) {
	u := &r.body.uploads[r.file]
	n, err := r.src.Read(p[:min(int64(len(p)), u.Size-r.read)])
	r.read += int64(n)
	if r.endsPart(p[:n]) {
		r.err = fmt.Errorf("%w: %s; send it under another filename", ErrBoundary, u.Input)
		return 0, r.err
	}
	switch ended := r.read == u.Size; {
	case errors.Is(err, io.EOF) && !ended:
		r.err = fmt.Errorf("%w: %s is shorter than the %d bytes that the call names", ErrUpload, u.Input, u.Size)
		return 0, r.err
	case err != nil && !errors.Is(err, io.EOF):
		r.err = err
		return n, err
	case ended && r.file == len(r.body.uploads)-1:
		if !r.atEnd() {
			return 0, r.err
		}
	}
	return n, nil
}

// endsPart reports whether a boundary ends in the next piece of a file.
func (r *streamReader) endsPart(piece []byte) bool {
	mark := r.body.boundary
	if len(mark) == 0 {
		return false
	}
	most := len(mark) - 1
	r.tail = append(r.tail, piece[:min(len(piece), most)]...)
	found := bytes.Contains(r.tail, mark) || bytes.Contains(piece, mark)
	if len(piece) >= most {
		r.tail = append(r.tail[:0], piece[len(piece)-most:]...)
	} else {
		r.tail = append(r.tail[:0], r.tail[max(len(r.tail)-most, 0):]...)
	}
	return found
}

// atEnd reports whether src has no more bytes.
func (r *streamReader) atEnd() bool {
	var one [1]byte
	n, err := io.ReadFull(r.src, one[:])
	switch {
	case n > 0:
		r.err = fmt.Errorf("%w: there are more bytes than the call names", ErrUpload)
	case !errors.Is(err, io.EOF):
		r.err = err
	}
	return r.err == nil
}

// next goes on to what follows a file.
func (r *streamReader) next() {
	last := r.file == len(r.body.uploads)-1
	if last && r.body.uploads[r.file].Size == 0 && !r.atEnd() {
		return
	}
	r.file, r.read, r.tail = r.file+1, 0, r.tail[:0]
	if r.text = r.body.after; !last {
		r.text = r.body.before[r.file]
	}
}
