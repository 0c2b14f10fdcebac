//go:build !race

package h2

const underRace = false
