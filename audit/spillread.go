package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Spill is the content of a spill file or of a journal: the rows of a session that are not in the log yet.
type Spill struct {
	Path    string
	Session string
	Rows    []Row
	Err     error // why the file cannot be read; nil: it can

	after head // the row that the session had committed last
}

// maxSpills bounds the spill files that are read.
const maxSpills = 4096

// Spills returns the journals and spill files beside the database at path that have rows which are not in the log, or
// that cannot be read. It waits a moment for running sessions, which fold their journals all the time.
func Spills(path string) ([]Spill, error) {
	names, err := filesBeside(path, spillSession)
	if err != nil {
		return nil, err
	}
	var all []Spill
	for _, name := range names {
		f, err := openSpill(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was adopted meanwhile
		}
		s := Spill{Path: name, Session: spillSession(name), Err: err}
		if err == nil {
			s = readSpill(f, name)
			_ = f.Close()
		}
		if len(s.Rows) > 0 || s.Err != nil {
			all = append(all, s)
		}
	}
	for _, u := range unfoldedJournals(path) {
		all = append(all, u.Spill)
	}
	return all, nil
}

// filesBeside returns the paths of the files beside the database of which sessionOf returns the session, the oldest
// session first.
func filesBeside(path string, sessionOf func(string) string) ([]string, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var names []string
	for len(names) < maxSpills {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if sessionOf(e.Name()) != "" {
				names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return names, nil
}

// spillSession returns the session in the name of a spill file; "" for other names.
func spillSession(path string) string { return fileSession(path, spillPrefix) }

// openSpill opens a spill file, which must be a regular file.
func openSpill(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.New("it is not a regular file")
	}
	return f, nil
}

// readSpill reads a spill file, and accepts only what keep writes. An incomplete last line is that of a process that
// was killed while it wrote, and is dropped.
func readSpill(f *os.File, path string) Spill {
	s := Spill{Path: path, Session: spillSession(path)}
	raw := make([]byte, spillSize+1)
	n, err := f.ReadAt(raw, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Err = errors.New("it cannot be read")
		return s
	}
	if n > spillSize {
		s.Err = errors.New("it is larger than a spill file")
		return s
	}
	if s.Rows, s.after, s.Err = parseSpill(raw[:n], s.Session); s.Err != nil {
		s.Rows = nil
	}
	return s
}

// parseSpill parses the content of a spill file.
func parseSpill(raw []byte, session string) (rows []Row, after head, err error) {
	raw = bytes.TrimRight(raw, "\x00")
	if len(raw) == 0 {
		return nil, after, nil
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return nil, after, errors.New("a zero is between its lines")
	}
	end := bytes.LastIndexByte(raw, '\n')
	if end < 0 {
		return nil, after, nil // its writer was killed in the first line
	}
	lines := bytes.Split(raw[:end], []byte{'\n'})
	var h spillHeader
	if err := strictJSON(lines[0], &h); err != nil || h.Version != 1 || h.Session != session || h.AfterSeq < 0 {
		return nil, after, errors.New("its first line is not the header of this session")
	}
	if h.AfterSeq > 0 {
		if _, ok := parseHead("0", h.AfterHash); !ok {
			return nil, after, errors.New("its first line is not the header of this session")
		}
	}
	after = head{seq: h.AfterSeq, hash: h.AfterHash}
	first := sha256.Sum256(lines[0])
	sum := first[:]
	seen := map[string]bool{}
	for i, line := range lines[1:] {
		r, next, err := parseSpillLine(line, sum, session)
		if err != nil || seen[r.ID] {
			return nil, after, fmt.Errorf("its line %d is not a row of this session", i+2)
		}
		seen[r.ID], sum = true, next
		rows = append(rows, r)
	}
	return rows, after, nil
}

// parseSpillLine parses a line behind the header, and returns its sum.
func parseSpillLine(line, sum []byte, session string) (Row, []byte, error) {
	var l spillLine
	var row spillRow
	if err := strictJSON(line, &l); err != nil {
		return Row{}, nil, err
	}
	next := chainSpill(sum, l.Row)
	if l.Sum != hex.EncodeToString(next) {
		return Row{}, nil, errors.New("its sum differs")
	}
	if err := strictJSON(l.Row, &row); err != nil {
		return Row{}, nil, err
	}
	r := Row(row)
	_, isID := idTime(r.ID)
	if !isID || r.TS.IsZero() || r.SessionID != session || r.Seq != 0 || r.Hash != "" || r.PrevHash != "" ||
		!slices.Contains(Events(), r.Event) || r.Fields[fieldSpilled] != true {
		return Row{}, nil, errors.New("a column is out of its bounds")
	}
	return r, next, nil
}

// strictJSON decodes one JSON value, and rejects unknown names and anything behind the value.
func strictJSON(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.InputOffset() != int64(len(raw)) {
		return errors.New("more follows")
	}
	return nil
}

// spills counts the rows of journals and spill files, and adds a finding for each file that cannot be read.
func (w *walk) spills(path string) error {
	all, err := Spills(path)
	for _, s := range all {
		w.report.Spilled += len(s.Rows)
		if s.Err != nil {
			kind := "a spill file"
			if spillSession(s.Path) == "" {
				kind = "a journal"
			}
			why := fmt.Sprintf("%s is not %s that a session left: %v", filepath.Base(s.Path), kind, s.Err)
			w.report.add(Finding{Found: foundUnreadable, Why: why})
		}
	}
	return err
}
