// Command asm writes the assembly of proxy/scrub. It is a module of its own: what it is made of is no dependency of
// the program, and no build needs it. go generate ./proxy/scrub runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo reads as assembly this way
)

func main() {
	ConstraintExpr("amd64")
	classifyAVX2()
	classifyAVX512()
	sample()
	gather()
	Generate()
}
