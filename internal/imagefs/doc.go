// Package imagefs presents the files of a container image as an [io/fs.FS].
//
// An engine shows the files of a container that was created and never started. It
// takes as long for one file as for a directory, so /etc is read at once, with
// [ReadTree]; for everything else a [Source] is asked name by name. [New] joins
// the two:
//
//	etc, err := imagefs.ReadTree(archive) // a tar archive of /etc
//	image := imagefs.New(etc, source)
//	roots, err := image.ReadFile("etc/ssl/certs/ca-certificates.crt")
//
// An image is not to be trusted: the sizes of files, the number of links that a
// name leads through, and the number of its elements are bounded. Links are
// resolved inside the image, as the kernel of a container would: one that leads
// above the root ends at the root. [Resolve] returns where a name leads even if
// nothing is there: a file that is copied into the image ends up at that place.
package imagefs
