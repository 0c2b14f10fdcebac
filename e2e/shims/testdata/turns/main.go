// Command turns times programs of a sandbox, which take turns. Its arguments are the number of turns, and command lines
// whose words have tabs between them. For each it prints a line with the medians of the wall time and of the processor
// time, in milliseconds.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(err)
	}
	commands := os.Args[2:]
	wall, cpu := make([][]time.Duration, len(commands)), make([][]time.Duration, len(commands))
	for round := range n + 2 { // two of each to warm up
		for i, command := range commands {
			w, c := run(command)
			if round >= 2 {
				wall[i], cpu[i] = append(wall[i], w), append(cpu[i], c)
			}
		}
	}
	for i := range commands {
		fmt.Printf("%.2f %.2f\n", median(wall[i]), median(cpu[i]))
	}
}

// run runs a command line, and returns its times.
func run(command string) (wall, cpu time.Duration) {
	words := strings.Split(command, "\t")
	for i := range words {
		words[i] = os.ExpandEnv(words[i])
	}
	cmd := exec.Command(words[0], words[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	wall = time.Since(began)
	if err == nil && !strings.Contains(out.String(), "octo-stand-in") {
		err = errors.New("not the response of the service")
	}
	if err != nil {
		fail(fmt.Errorf("%s: %w: %s%s", words[0], err, &out, &errs))
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
