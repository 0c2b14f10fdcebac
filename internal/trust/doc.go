// Package trust makes the clients in a container image trust a root, and use a
// proxy, without being asked: with files that are copied into the container
// before it starts, and with variables for what looks in no common place.
//
//	files, err := trust.Install(image, root, trust.Options{Getenv: image.Getenv})
//	env := trust.Environment{Proxy: "http://127.0.0.1:3128", CA: trust.CAFile, Bundle: trust.BundleFile}
//
// [Install] reads an image and changes nothing: it returns the files, each at
// the place that the image's links lead to, so that a distribution's own links
// stay. docs/trust.md lists them, and which client reads which. An image that
// cannot be made to trust the root is an [Error] with the file that stands in
// the way. What an image holds is not to be trusted: a link out of its file
// system ends at its root, one into a directory that the sandbox mounts is
// refused, and what is merged is checked and bounded first.
package trust
