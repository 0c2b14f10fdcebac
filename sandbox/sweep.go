package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
)

// Count returns the number of containers of a session.
func (e *Engine) Count(ctx context.Context, session string) (_ int, err error) {
	defer e.explain(&err)
	list, err := e.list(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range list {
		if c.Labels[labelSession] == session {
			n++
		}
	}
	return n, nil
}

// Sweep removes the containers of sessions that do not live any more, and
// tells how many it removed.
func (e *Engine) Sweep(ctx context.Context, alive func(session string) bool) (_ int, err error) {
	defer e.explain(&err)
	list, err := e.list(ctx)
	if err != nil {
		return 0, err
	}
	removed := 0
	var faults []error
	// A gateway cannot go before the box that shares its network.
	for _, role := range []string{"box", "gateway", ""} {
		for _, c := range list {
			// A session of another home, too, is its process.
			if c.role() != role || !c.ours() || role != "" && (alive(c.Labels[labelSession]) || ownerLives(c.Labels[labelOwner])) {
				continue
			}
			switch err := e.removeOnce(ctx, c.ID); {
			case errors.Is(err, errUnderWay): // another process sweeps too
			case err != nil && strings.Contains(err.Error(), "dependent containers"): // its box was made meanwhile; the next sweep has both
			case err != nil:
				faults = append(faults, err)
			default:
				removed++
			}
		}
	}
	return removed, errors.Join(faults...)
}

// remove removes a container, and waits for a removal that is under way.
func (e *Engine) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTime)
	defer cancel()
	for {
		err := e.removeOnce(ctx, id)
		if !errors.Is(err, errUnderWay) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

var errUnderWay = errors.New("remove a container: somebody else does already")

func (e *Engine) removeOnce(ctx context.Context, id string) error {
	err := e.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	plainly(&err)
	if err == nil {
		return nil
	}
	switch text := strings.ToLower(err.Error()); {
	case strings.Contains(text, "no such container"):
		return nil
	case strings.Contains(text, "already in progress"):
		return errUnderWay
	}
	return fmt.Errorf("remove a container: %w", err)
}
