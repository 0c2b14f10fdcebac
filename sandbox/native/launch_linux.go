package native

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// writeLaunch returns a file in memory with a launch, for the keeper and the init to read: the length of its JSON, the
// JSON, and the contents of files, which only the init needs.
func writeLaunch(l launch) (*os.File, error) {
	contents := [][]byte{l.Etc}
	l.Etc, l.Files = nil, slices.Clone(l.Files)
	for i, f := range l.Files {
		contents = append(contents, f.Data)
		l.Files[i].Data = nil
	}
	for _, data := range contents {
		l.Sizes = append(l.Sizes, len(data))
	}
	header, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	const name = "aileron-sandbox"
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory for the sandbox: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	length := binary.BigEndian.AppendUint64(nil, uint64(len(header)))
	for _, data := range append([][]byte{length, header}, contents...) {
		if _, err := f.Write(data); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("write a file in memory for the sandbox: %w", err)
		}
	}
	return f, nil
}

// readLaunch reads what writeLaunch has written, with the contents of files if they are wanted.
func readLaunch(f *os.File, l *launch, contents bool) error {
	length := make([]byte, 8)
	err := readAt(f, length, 0)
	at := int64(len(length))
	if err == nil {
		header := make([]byte, binary.BigEndian.Uint64(length))
		if err = readAt(f, header, at); err == nil {
			err = json.Unmarshal(header, l)
		}
		at += int64(len(header))
	}
	if err == nil && contents {
		into := []*[]byte{&l.Etc}
		for i := range l.Files {
			into = append(into, &l.Files[i].Data)
		}
		for i, data := range into {
			*data = make([]byte, l.Sizes[i])
			if err = readAt(f, *data, at); err != nil {
				break
			}
			at += int64(len(*data))
		}
	}
	if err != nil {
		return fmt.Errorf("read what the sandbox is to be: %w", err)
	}
	return nil
}

func readAt(f *os.File, into []byte, at int64) error {
	_, err := io.ReadFull(io.NewSectionReader(f, at, int64(len(into))), into)
	return err
}
