// Command aileron runs AI agents in sealed boxes whose only way out is a
// mediating HTTPS proxy, the plane.
//
//	aileron launch --sandbox=podman opencode
//	aileron audit tail -f
//
// See README.md for the life of a request and docs/ for the manual.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	protected, err := protectProcess()
	if err != nil {
		fmt.Fprintln(os.Stderr, "aileron:", err)
		os.Exit(1)
	}
	// net/http's transport prints the bytes of an answer that nobody asked for,
	// and those may echo a credential. What aileron has to say goes elsewhere.
	log.SetOutput(io.Discard)
	cobra.EnableCommandSorting = false // help begins with the main job
	os.Exit(Main(context.Background(), os.Args[1:], osApp(protected)))
}
