package main

import "strings"

// exportLine is NAME=VALUE as a line that a POSIX shell evaluates.
func exportLine(e string) string {
	name, value, _ := strings.Cut(e, "=")
	return "export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
