// Package imagefs presents the files of a container image as an [io/fs.FS].
//
// An image is read through a container that is created and never started, and
// an engine takes as long for one file as for a directory. So /etc is read at
// once, with [ReadTree], and everything else is asked for name by name through
// a [Source]; [New] joins the two:
//
//	etc, err := imagefs.ReadTree(archive) // a tar archive of /etc
//	image := imagefs.New(etc, source)
//	roots, err := image.ReadFile("etc/ssl/certs/ca-certificates.crt")
//
// An image is not to be trusted. Sizes, the number of links that a name may
// lead through, and the number of its elements are bounded. Links are resolved
// inside the image, as its own kernel would: one that leads above the root
// stays at the root. [Resolve] returns where a name leads even if nothing is
// there, which is where a file that is copied into the image would end up.
package imagefs
