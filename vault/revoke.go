package vault

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/ALRubinger/aileron/internal/format"
)

// Revoke removes a binding, even if its file is broken.
func (v *Vault) Revoke(name string) error {
	file, err := bindingFile(name)
	if err != nil {
		return err
	}
	unlock, err := v.change()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := v.binding(name); errors.As(err, new(*format.Error)) {
		return fmt.Errorf("revoke %s: %w", name, err) // what else it means is not known here
	}
	err = v.remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, ErrNotBound)
	}
	if err != nil {
		return fmt.Errorf("revoke %s: %w", name, err)
	}
	return nil
}
