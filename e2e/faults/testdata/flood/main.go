// Command flood is an agent that opens many connections at once and keeps
// them: flood COUNT ADDRESS…. When all are answered or refused it prints how
// many are open and how many were closed at once, waits for its standard
// input to end, and goes.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var kept, closed, failed atomic.Int64
	var dialling sync.WaitGroup
	turns := make(chan struct{}, 256) // at a time
	stop := make(chan struct{})
	for i := range count {
		turns <- struct{}{}
		dialling.Go(func() {
			defer func() { <-turns }()
			conn, err := net.DialTimeout("tcp", os.Args[2+i%(len(os.Args)-2)], 5*time.Minute)
			if err != nil {
				failed.Add(1)
				return
			}
			// One that is refused ends at once; one that is served is silent.
			_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
			_, err = conn.Read(make([]byte, 1))
			var silent net.Error
			if !errors.As(err, &silent) || !silent.Timeout() {
				closed.Add(1)
				_ = conn.Close()
				return
			}
			kept.Add(1)
			go func() { <-stop; _ = conn.Close() }()
		})
	}
	dialling.Wait()
	fmt.Printf("open %d closed %d failed %d\n", kept.Load(), closed.Load(), failed.Load())
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(stop)
}
