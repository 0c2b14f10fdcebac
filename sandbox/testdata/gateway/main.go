// Command gateway stands in a gateway's place where tests are about
// containers. It performs the file play beside the sockets, a line at a time:
// print words to stdout (say) or stderr (complain), wait for a time (wait), exit with a code.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	play, err := os.ReadFile("/run/aileron/play")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for line := range strings.Lines(string(play)) {
		verb, words, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "say":
			fmt.Println(words)
		case "complain":
			fmt.Fprintln(os.Stderr, words)
		case "wait":
			d, err := time.ParseDuration(words)
			if err != nil {
				panic(err)
			}
			time.Sleep(d)
		case "exit":
			code, err := strconv.Atoi(words)
			if err != nil {
				panic(err)
			}
			os.Exit(code)
		}
	}
}
