//go:build !linux

package gateway

import (
	"context"
	"errors"
)

// Run fails: network namespaces are Linux's.
func Run(context.Context, Config) error {
	return errors.New("run the gateway: it needs Linux")
}
