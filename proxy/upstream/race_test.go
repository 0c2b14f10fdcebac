//go:build race

package upstream

// underRace reports whether the race detector runs, with which a sync.Pool drops
// some of what it is given.
const underRace = true
