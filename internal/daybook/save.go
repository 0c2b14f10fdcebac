package daybook

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// savedSuffix ends the name of the copy of a day's file that a power cut leaves whole. The system writes the file
// itself to the disk when it likes, and may be cut off in both of its images.
const savedSuffix = ".saved"

// saveLater has a file that was changed saved in a while, with what is changed until then. b.mu must be held.
func (b *Book) saveLater(p *page) {
	if p.saves != nil {
		return
	}
	b.saving.Add(1)
	p.saves = time.AfterFunc(b.opts.SaveAfter, func() {
		defer b.saving.Done()
		b.mu.Lock()
		raw := p.lastImage()
		b.mu.Unlock()
		p.save(raw)
	})
}

// saveNow saves a file that was to be saved later. b.mu must be held, or the page be no one else's any more.
func (b *Book) saveNow(p *page) {
	if p.saves != nil && p.saves.Stop() {
		defer b.saving.Done()
		p.save(p.lastImage())
	}
}

// lastImage returns the image that was written last, which is to be saved.
func (p *page) lastImage() []byte {
	p.saves = nil
	return slices.Clone(p.raw)
}

// save replaces the copy of a file, and has it on the disk when it returns. What fails is tried again after the next
// change: nothing depends on the copy but a power cut.
func (p *page) save(raw []byte) {
	path := p.file.Name() + savedSuffix
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-")
	if err != nil {
		return
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// readSaved returns the image of the copy; its number is 0 if there is none that is whole.
func (p *page) readSaved() (image, error) {
	path := p.file.Name() + savedSuffix
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return image{}, nil
	case err != nil:
		return image{}, err
	case len(raw) < headSize:
		return image{}, fmt.Errorf("%s %w", path, errDamaged)
	}
	return readImage(path, [headSize]byte(raw), bytes.NewReader(raw), 0)
}
