//go:build !linux

package gateway

import (
	"context"
	"errors"
)

// Run returns an error: only Linux has network namespaces.
func Run(context.Context, Config) error {
	return errors.New("run the gateway: it needs Linux")
}

// Check returns an error, as Run does.
func Check(context.Context, Config) error {
	return errors.New("check the gateway: it needs Linux")
}
