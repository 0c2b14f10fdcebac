package main

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// wideLimits are what a session needs for many tunnels.
const wideLimits = "connections = 12000\nrequests = 4096\n"

const (
	manyTunnels   = 10_000
	activeTunnels = 1000
	fewTunnels    = 64

	wideTunnels = "tunnels open"
	wideTunnel  = "KiB per tunnel"
	wideCPU     = "CPU ms/1000, 1000 active"
	wideTail    = "p99 µs, 1000 active"
	wideGrowth  = "CPU growth × over 64 tunnels"
)

// wide opens ten thousand tunnels of one session, all but a thousand of them idle, and compares a request's cost with
// that of a session with 64 tunnels.
func wide(ctx context.Context, s *subject, t turn) (f figures, err error) {
	session, err := s.another(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		s.elsewhere.Add(session.sent.Load())
		session.stop()
	}()
	few, err := small(fewTunnels)(ctx, session, t)
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, memorySettles); err != nil {
		return nil, err
	}
	before, _, err := memory(session.pid)
	if err != nil {
		return nil, err
	}
	room, err := descriptorRoom()
	if err != nil {
		return nil, err
	}
	// Resumed, because ten thousand whole handshakes take ten seconds of this machine.
	open, err := session.openMany(ctx, min(t.many(manyTunnels), room), tls.NewLRUClientSessionCache(8))
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	if err = errors.Join(err, settle(ctx, memorySettles)); err != nil {
		return nil, err
	}
	after, _, err := memory(session.pid)
	if err != nil {
		return nil, err
	}
	workers := make([]worker, t.many(activeTunnels))
	for i := range workers {
		c := open[i*len(open)/len(workers)]
		_ = c.SetDeadline(time.Now().Add(stuck))
		workers[i] = repeat(func() error { return c.item(getItems) })
	}
	// What they open upstream together is not measured.
	if _, err := drive(session, turn{length: t.length / 2}, workers); err != nil {
		return nil, err
	}
	many, err := drive(session, t, workers)
	if err != nil {
		return nil, err
	}
	return figures{
		wideTunnels: float64(len(open)),
		wideTunnel:  float64(after-before) / float64(len(open)) / 1024,
		wideCPU:     many[cpuPer1000],
		wideTail:    many[tail],
		wideGrowth:  many[cpuPer1000] / few[cpuPer1000],
	}, nil
}

// descriptorRoom returns how many tunnels this machine has room for: a session keeps half of its descriptors for
// upstream connections.
func descriptorRoom() (int, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	return int(min(l.Max, 1<<20)/2) - 500, nil
}
