//go:build !race

package upstream

const underRace = false
