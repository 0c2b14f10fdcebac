//go:build race

package proxy

// poisonAll makes every build with the race detector overwrite the exchanges that
// have ended, so that a use of one is found.
const poisonAll = true
