// Package engine drives Podman and Docker through the Docker API. Call [Find]
// first, or [Patience.Find] to bound and report the waits for it; then the
// methods of [Engine] make, start, watch and remove containers, and look up,
// build and import images.
//
// Where the two engines differ is stated in one place: the interface dialect,
// which podman.go and docker.go implement. No other file asks which engine it
// talks to.
//
// No call has a time-out while the engine shows that it lives. One that shows no
// sign of life is given up, and the error is a [WaitError]; one that ended
// is a [GoneError]. The package knows nothing of sandboxes, sessions or
// proxies: what a container is asked for is its caller's decision, in a
// [Config].
package engine
