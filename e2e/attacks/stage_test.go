package attacks

import (
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// places are the addresses of the fixture. They look public to the address
// floor and exist in this namespace only.
var places = map[string]netip.Addr{
	"dns":             netip.MustParseAddr("93.184.215.53"),
	"api.good.test":   netip.MustParseAddr("93.184.215.14"),
	"key.good.test":   netip.MustParseAddr("93.184.215.15"),
	"q.good.test":     netip.MustParseAddr("93.184.215.16"),
	"basic.good.test": netip.MustParseAddr("93.184.215.17"),
	"oauth.good.test": netip.MustParseAddr("93.184.215.18"),
	"idp.good.test":   netip.MustParseAddr("93.184.215.19"),
	"plain.good.test": netip.MustParseAddr("93.184.215.20"),
	"alt.good.test":   netip.MustParseAddr("93.184.215.21"),
	"evil.test":       netip.MustParseAddr("93.184.215.66"), // whatever comes here is a failure
}

// ports are what the origins listen on.
var ports = map[string][]uint16{
	"api.good.test": {443}, "key.good.test": {443}, "q.good.test": {443}, "basic.good.test": {443},
	"oauth.good.test": {443}, "idp.good.test": {443}, "plain.good.test": {443, 80}, "alt.good.test": {8443},
	"evil.test": {443, 80},
}

// stage is what stands around a plane: origins, the name server, the watch
// over every connection that is attempted. There is one in a process, for
// its addresses and ports are the namespace's.
type stage struct {
	dir       string
	roots     *roots
	rootsFile string
	names     *nameServer
	dials     *dialWatch
	origins   map[string]*origin // by "host:port"
	secrets   map[string]string  // S1...
	leaks     *harness.Leaks
}

// on is the stage, from TestMain on.
var on *stage

// newStage starts everything; the process's end stops it.
func newStage(dir string) (*stage, error) {
	s := &stage{dir: dir, origins: map[string]*origin{}, secrets: map[string]string{}}
	for _, name := range []string{"S1", "S2", "S3", "S4", "S5a", "S5r", "S5c", "S6"} {
		s.secrets[name] = harness.NewSecret()
	}
	s.leaks = harness.NewLeaks(s.secrets)
	s.leaks.Add("S4", "user:"+s.secrets["S4"])
	var err error
	if s.roots, err = newRoots(); err != nil {
		return nil, err
	}
	s.rootsFile = filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(s.rootsFile, s.roots.pem(), 0o600); err != nil {
		return nil, err
	}
	if s.names, err = startNames(netip.AddrPortFrom(places["dns"], 53)); err != nil {
		return nil, err
	}
	if s.dials, err = watchDials(); err != nil {
		return nil, err
	}
	for host, ports := range ports {
		for _, port := range ports {
			o, err := startOrigin(s.roots, host, netip.AddrPortFrom(places[host], port))
			if err != nil {
				return nil, err
			}
			s.origins[o.name] = o
		}
	}
	return s, nil
}

// settle waits until the origins have noted all that was sent to them. What
// the plane does not wait for may still lie in their sockets.
func (s *stage) settle(patience time.Duration) {
	harness.Poll(patience, time.Millisecond, func() bool {
		settled := true
		for _, o := range s.origins {
			settled = settled && o.settled()
		}
		return settled
	})
}
