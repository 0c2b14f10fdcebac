package launch

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipe is a connection in memory, which closes both directions at once.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error { return p.Close() }

// A published connection lives as long as something moves in one of its directions, and an hour longer.
func TestAPublishedConnectionEndsWhenItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, published := net.Pipe()
		box, server := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			joinUntilIdle(pipe{published}, pipe{box}, portIdle)
		}()
		buf := make([]byte, 1)
		for i, way := range [][2]net.Conn{{client, server}, {server, client}, {server, client}, {client, server}} {
			<-time.After(portIdle - time.Second)
			if _, err := way[0].Write([]byte{byte(i)}); err != nil {
				t.Fatalf("after %d moves a write fails: %v", i, err)
			}
			if _, err := io.ReadFull(way[1], buf); err != nil || buf[0] != byte(i) {
				t.Fatalf("after %d moves %v arrives, %v", i, buf, err)
			}
		}
		begin := time.Now()
		<-ended
		if took := time.Since(begin); took != portIdle {
			t.Errorf("an idle connection ends after %v, want %v", took, portIdle)
		}
		for _, c := range []net.Conn{client, server} {
			if _, err := c.Read(buf); err == nil {
				t.Error("a side is open")
			}
		}
	})
}
