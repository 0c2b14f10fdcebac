package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/sandbox"
)

const (
	localtime = "/etc/localtime"
	zoneinfo  = "usr/share/zoneinfo"
)

// timeZone is the time zone of a host. Its data is nil where there is none.
type timeZone struct {
	name string // as in Europe/Berlin; "" is unknown
	data []byte // what /etc/localtime holds
}

// hostZone returns the time zone of the host whose files are below root: the one
// that the variable TZ names, else the one of /etc/localtime.
func hostZone(tz, root string) timeZone {
	database := filepath.Join(root, zoneinfo)
	if name := strings.TrimPrefix(tz, ":"); filepath.IsLocal(name) {
		if data := zoneData(filepath.Join(database, name)); data != nil {
			return timeZone{name, data}
		}
	}
	file := filepath.Join(root, localtime)
	zone := timeZone{data: zoneData(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		if _, name, ok := strings.Cut(real, zoneinfo+"/"); ok && zone.data != nil {
			zone.name = name
		}
	}
	return zone
}

// addZone adds the time zone of the host to what a sandbox gets.
func (b *sandboxed) addZone(u *sandbox.Uplink, zone timeZone) {
	// A mount in a read-only root would end where the image's link leads: in its own file of another zone.
	if zone.data != nil && !b.ReadOnly {
		u.Files = append(u.Files, sandbox.File{Path: localtime, Mode: 0o644, Data: zone.data})
	}
	// In other images the name may mean nothing, and a program would take it for UTC.
	if zone.name != "" && b.Image.Dockerfile != nil {
		u.Defaults = append(u.Defaults, "TZ="+zone.name)
	}
}

// maxZone bounds a file of a time zone. The largest has 4 KiB.
const maxZone = 64 << 10

// zoneData reads a file of a time zone (RFC 9636). It is nil for any other file.
func zoneData(file string) []byte {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > maxZone {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(data, []byte("TZif")) {
		return nil
	}
	if _, err := time.LoadLocationFromTZData("", data); err != nil {
		return nil
	}
	return data
}
