//go:build !linux

package dirwatch

import "errors"

// New returns an error: there is no inotify.
func New(...Dir) (*Watch, error) { return nil, errors.New("watch directories: not on this system") }

// Follow is never called.
func (*Watch) Follow() error { return errors.ErrUnsupported }

// Close is never called.
func (*Watch) Close() {}
