// Package trust makes the clients in a container trust a root and use a proxy
// without any configuration of their own: with files that are copied into the
// container before it starts, and with environment variables for programs that
// look in no common place.
//
//	files, err := trust.Install(image, root, trust.Options{Getenv: image.Getenv})
//	env := trust.Environment{Proxy: "http://127.0.0.1:3128", CA: trust.CAFile, Bundle: trust.BundleFile}
//
// [Install] reads the image and changes nothing. It returns the files, each with
// the path that the image's links lead to, so that a distribution's own links
// stay. docs/trust.md lists them, and which client reads which. If the image
// cannot be made to trust the root, the error is an [Error] with the file that
// stands in the way.
//
// An image is not to be trusted: a link out of its file system ends at its root,
// a link into a directory that the sandbox mounts is refused, and a file that is
// merged is bounded and checked first.
package trust
