package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// socketNames are the sockets in Uplink.Sockets at which all that a sealed
// sandbox sends ends.
var socketNames = []string{"proxy.sock", "redirect.sock"}

// uplinkSockets watches the sockets of a sandbox. Without one of them it reaches
// nothing any more, and no program inside could find out why.
type uplinkSockets struct {
	*time.Ticker
	paths []string
	files []os.FileInfo
}

// watchUplink starts to watch; where there are no sockets there is nothing to
// watch.
func watchUplink(dir string) (*uplinkSockets, error) {
	u := &uplinkSockets{}
	for _, name := range socketNames {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("watch the sandbox's sockets: %w", err)
		}
		u.paths, u.files = append(u.paths, path), append(u.files, info)
	}
	u.Ticker = time.NewTicker(time.Second)
	return u, nil
}

// removed is a socket that is not there any more, or not the same; "" when all
// are.
func (u *uplinkSockets) removed() string {
	for i, path := range u.paths {
		if now, err := os.Stat(path); err != nil || !os.SameFile(now, u.files[i]) {
			return path
		}
	}
	return ""
}
