package gateway

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ALRubinger/aileron/internal/hostport"
)

// maxNames bounds the table: about 10 MiB if every name is as long as can be.
const maxNames = 1 << 15

// source is the source address of the sandbox's connections. It lies in the
// benchmarking block (RFC 2544, RFC 6890), which is never routed.
const source = "198.19.255.254"

// firstFake is the first address of the table. The block 198.18.0.0/15 of RFC
// 2544 has room for four times maxNames, and source lies beyond them.
var firstFake = netip.MustParseAddr("198.18.0.1")

var errTableFull = errors.New("assign an address: the table of names is full")

// names maps every name to a fake address of its own, for as long as the gateway
// runs: a client may keep an address as long as it likes, and must never reach
// another name under it.
type names struct {
	mu      sync.RWMutex
	room    int // the most names
	byName  map[string]uint32
	all     []string
	refused atomic.Int64 // queries for which there was no room
}

func newNames() *names { return &names{room: maxNames, byName: map[string]uint32{}} }

// address returns the address of name, which is plain (see plainName).
func (n *names) address(name string) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, ok := n.byName[name]
	if !ok {
		if len(n.all) == n.room {
			n.refused.Add(1)
			return netip.Addr{}, errTableFull
		}
		i = uint32(len(n.all)) //nolint:gosec // less than n.room
		n.byName[name] = i
		n.all = append(n.all, name)
	}
	first := firstFake.As4()
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(first[:])+i))), nil
}

// name returns the name whose address is addr.
func (n *names) name(addr netip.Addr) (string, bool) {
	if !addr.Is4() {
		return "", false
	}
	a, first := addr.As4(), firstFake.As4()
	i := uint64(binary.BigEndian.Uint32(a[:])) - uint64(binary.BigEndian.Uint32(first[:]))
	n.mu.RLock()
	defer n.mu.RUnlock()
	if i >= uint64(len(n.all)) { // an address before the first wraps to a huge number
		return "", false
	}
	return n.all[i], true
}

// plainName returns the form of a DNS name, with the dot at its end, that the
// proxy accepts in a CONNECT, and false for a name that no HTTP authority can be.
func plainName(s string) (string, bool) {
	name, err := hostport.ParseName(strings.TrimSuffix(s, "."))
	return name, err == nil
}
