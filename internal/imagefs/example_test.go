package imagefs_test

import (
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/ALRubinger/aileron/internal/imagefs"
)

// A link leads into a directory that the image does not have yet.
func ExampleResolve() {
	image := fstest.MapFS{
		"etc/ssl/cert.pem": {Mode: fs.ModeSymlink | 0o777, Data: []byte("/var/roots/all.pem")},
	}
	place, err := imagefs.Resolve(image, "etc/ssl/cert.pem")
	if err != nil {
		panic(err)
	}
	fmt.Println(place.Path, place.Exists(), place.Missing)
	// Output: var/roots/all.pem false [var var/roots]
}
