//go:build !linux

package capture

import "errors"

// exchangeNames reports that names cannot be exchanged here.
func exchangeNames(string, string) error { return errors.ErrUnsupported }
