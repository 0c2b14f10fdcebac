package seal

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
)

// What came of an attempt is dead when it is one of these: an error number
// that is said at once, or an end. A time-out is none.
const (
	refused   = `EPERM|EACCES|ENOSYS`
	absent    = `ENOENT|ENXIO|ENODEV|ENOTDIR`
	noIPv6    = `ENETUNREACH|EADDRNOTAVAIL|EPERM|EACCES|EAFNOSUPPORT`
	noKind    = refused + `|EPROTONOSUPPORT|ESOCKTNOSUPPORT|EAFNOSUPPORT|EOPNOTSUPP`
	notHere   = `HTTP 403 host_not_allowed`
	noRequest = `HTTP 400 malformed_request`
	answered  = `HTTP 200`
	sshDenied = `SSH denied` // in aileron's own words, with a row
	noWrite   = refused + `|EROFS|` + absent
)

// rules hold what must come of each attempt, by its name: the first rule that
// matches counts. A section is a line of the table in docs/sandbox.md; the
// ids are those of the list of attacks.
var rules = []struct {
	section string // with the ids
	rules   []rule
}{
	{"what is allowed works, with the proxy and without it, on any port, before and after", []rule{
		{`control (before|after): .*`, answered, false},
		{`control: a socket of .*`, `ok`, false},
		{`tls to an address, an allowed name`, answered, false},
		{`about this box`, `[a-z0-9]+`, false},
	}},
	{"cloud metadata, by address and by name (ENV-04)", []rule{
		{`tcp metadata fd00:ec2::254`, noIPv6, false},
		{`tcp metadata .*`, notHere, false},
	}},
	{"TLS, HTTP, SSH and SMTP to bare addresses and to names that are not allowed, on any port (ENV-01)", []rule{
		{`tls to .*`, notHere, false},
		{`http to .*`, notHere, false},
		{`ssh to .*`, sshDenied, false},
		{`smtp to .*`, noRequest, false},
		{`(MPTCP|TCP fast open|tcp6 to a mapped address)`, notHere, false},
		{`the redirect's own port`, `closed|ECONNRESET`, false},
	}},
	{"DoH, DoT and SOCKS (ENV-02)", []rule{
		{`Do[TH] to 1.1.1.1`, notHere, false},
		{`SOCKS at the proxy`, noRequest, false},
	}},
	{"the host: its loopback, its addresses, its name", []rule{
		{`tcp to the host's loopback .*`, `ECONNREFUSED|EADDRNOTAVAIL`, false},
		{`tcp to the host [0-9.]+`, notHere, false},
		{`tcp to the host .*:.*`, noIPv6, false},
		{`tcp to \S+\.internal`, notHere, false},
	}},
	{"IPv6: global, link-local, multicast, translated, over TCP and UDP (ENV-01)", []rule{
		{`(tcp6|udp6).*`, noIPv6, false},
		{`MPTCP, IPv6`, noIPv6 + `|ENOPROTOOPT|EPROTONOSUPPORT`, false},
	}},
	{"UDP to any port: QUIC, NTP, multicast, broadcast (ENV-01)", []rule{
		{`udp.*`, refused, false},
		{`UDP-Lite`, noKind, false},
	}},
	{"DNS at any resolver, over UDP and TCP: answered in the sandbox, TXT and its like empty (ENV-01)", []rule{
		{`DNS A .*`, `Success, an address of 198.18.0.0/15`, false},
		{`DNS ANY at the stub`, `Success, an address of 198.18.0.0/15|Success, nothing`, false},
		{`DNS (TXT|AAAA|NULL|AXFR) .*`, `Success, nothing`, false},
		{`DNS at another port`, `ECONNREFUSED`, false},
		{`DNS over the redirect: bytes that are none`, `closed|ECONNRESET`, false},
		{`a flood of names`, `Refused, nothing`, true}, // in one box is enough
	}},
	{"ICMP and ICMPv6, raw and by ping sockets; raw IP; SCTP, DCCP, L2TP, SMC (ENV-01)", []rule{
		{`ICMPv6, a ping socket`, noIPv6 + `|` + refused, false},
		{`ICMP.*|raw .*`, refused, false},
		{`(SCTP.*|DCCP|L2TP|SMC over INET)`, noKind, false},
		{`(a packet mark|a transparent socket|any receive buffer)`, refused, false},
	}},
	{"AF_VSOCK, AF_PACKET, AF_ALG, AF_BLUETOOTH, AF_XDP and every other family but UNIX, INET, INET6 and NETLINK", []rule{
		{`AF_.*`, refused, false},
		{`every other socket family`, `0 made`, false},
	}},
	{"netlink: nft flush ruleset, ip link, route, addr, rule and neigh, xfrm, audit (ENV-04)", []rule{
		{`netlink: .*`, refused + `|ECONNREFUSED`, false}, // nothing listens for audit in a user's namespace
	}},
	{"unix sockets of others: abstract ones of the host, the session's own, engines', D-Bus, SSH agents (ENV-04)", []rule{
		{`an abstract socket of the host`, `ECONNREFUSED`, false},
		{`the socket .*`, absent, false},
		{`the variable .*`, `""`, false},
		{`descriptors that were inherited`, `0 found`, false},
	}},
	{"namespaces: unshare, clone and clone3 with each flag, setns to each of process 1", []rule{
		{`(unshare|clone|clone3) .*`, refused, false},
		{`setns to .*`, refused + `|` + absent, false}, // kernels differ in which there are
	}},
	{"mount, remount, umount, fsopen, open_tree, pivot_root, chroot", []rule{
		{`(mount|remount|umount)[ ,].*|mount_setattr|fsopen|open_tree|pivot_root|chroot`, refused, false},
	}},
	{"bpf, perf_event_open, keyrings, userfaultfd, io_uring, kexec, modules, open_by_handle_at, clocks, and every " +
		"system call that the profile does not name", []rule{
		{`(io_uring_setup|bpf|perf_event_open|keyctl|add_key|request_key|userfaultfd|` +
			`kexec_load|kexec_file_load|init_module|finit_module|delete_module|open_by_handle_at|` +
			`process_vm_readv|kcmp|syslog|reboot|sethostname|settimeofday|clock_settime|swapon|acct|` +
			`quotactl|fanotify_init|personality, 32 bits)`, refused, false},
		{`every system call that is not on the list`, `0 of \d+ are let through`, false},
	}},
	{"32-bit (int 0x80) and x32 system calls", []rule{
		{`other numbers: .*`, `killed|` + refused, true}, // amd64 has them
	}},
	{"writing to /proc/sys, /sys, /proc/sysrq-trigger and cgroups; devices, mknod; kernel memory and logs (ENV-04)",
		[]rule{
			{`write to .*`, noWrite, false},
			{`open /.*`, refused + `|` + absent, false},
			{`read /.*`, refused + `|` + absent + `|closed`, false}, // masked: there, and empty
			{`mknod of .*`, refused, false},
			{`devices beyond the usual`, `0 found`, false},
		}},
	{"privileges: every set of capabilities of every thread, no-new-privileges, the filter, setuid programs, other " +
		"users (ENV-04)", []rule{
		{`threads with a capability.*`, `0 found`, false},
		{`setuid programs that give a user`, `0 of some`, false},
		{`(setuid|setgid|chown) to another .*`, refused + `|EINVAL`, false},
	}},
	{"processes of the host: seen, traced, signalled; the gateway's files (ENV-04)", []rule{
		{`(ptrace|a signal|a handle) (of|to) a process of the host's, .*`, `ESRCH|EPERM`, false},
		{`processes that can be seen`, `[12] seen`, false},
		{`the gateway's files at .*`, absent + `|` + refused, false},
		{`a path of the host's, .*`, absent, false},
	}},
	{"mounts: the project and nothing else of the host's (ENV-04)", []rule{
		{`mounts`, `\d+ seen`, false},
	}},
	{"the secret (plain, base64, hexadecimal, as in URLs), the passphrase, a CA key, the vault's path: in files, " +
		"names, environments, command lines and memory (ENV-04, ENV-05)", []rule{
		{`(files|memory) searched`, `ok`, false},
		{`found`, `\d+ found`, false},
	}},
}

type rule struct {
	name, result string // regular expressions, of the whole
	optional     bool   // that it is tried
}

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) }

// judge compares what came of each attempt with the rules.
func (p *person) judge(attempts []attempt) {
	p.t.Helper()
	type compiled struct {
		rule
		name, result *regexp.Regexp
		tried        int
	}
	var all []*compiled
	for _, s := range rules {
		for _, r := range s.rules {
			all = append(all, &compiled{rule: r, name: whole(r.name), result: whole(r.result)})
		}
	}
	ended := false
next:
	for _, a := range attempts {
		if ended = a.Name == "the end"; ended {
			continue
		}
		for _, r := range all {
			if !r.name.MatchString(a.Name) {
				continue
			}
			r.tried++
			if a.Timeout || !r.result.MatchString(a.Result) {
				p.t.Errorf("%s: %s, want %s\n%s", a.Name, a.Result, r.rule.result, a.Detail)
			}
			continue next
		}
		p.t.Errorf("no rule says what must come of %q; it was %s", a.Name, a.Result)
	}
	if !ended {
		p.t.Error("the probe did not come to its end")
	}
	for _, r := range all {
		if r.tried == 0 && !r.optional {
			p.t.Errorf("nothing was tried of %s", r.rule.name)
		}
	}
}

// details of what was seen and found, beyond its number.
var (
	hostMounts = whole(`/ \S+ rw|/etc/(resolv\.conf|hosts|hostname) \S+ r[ow]|/run/\.containerenv \S+ r[ow]|` +
		`/run/secrets \S+ r[ow]|/(run/podman-init|sbin/docker-init|usr/sbin/docker-init|dev/init) \S+ ro|` +
		`/usr overlay ro|/(lib|lib32|lib64|libx32|bin|sbin) \S+ ro|` + // of a native sandbox
		`(/opt/aileron/manifests|/etc/aileron) \S+ ro`)
	kernels    = whole(`\S+ (proc|sysfs|tmpfs|devpts|devtmpfs|mqueue|cgroup2?) r[ow]`)
	ownProcess = whole(`\d+ (\S+ -- )?\./probe`)
	// That the search finds what is there: in files, in environments, in memory.
	mustBeFound = []*regexp.Regexp{regexp.MustCompile(`the canary in \S+/canary\n`),
		regexp.MustCompile(`the control in /proc/\d+/environ\n`), regexp.MustCompile(`the control in /proc/\d+/mem\n`)}
)

func (p *person) look(attempts []attempt) {
	p.t.Helper()
	place := `(` + sandbox.Workspace + `|` + regexp.QuoteMeta(p.project) + `)`
	mayBeFound := whole(`the canary in ` + place + `/canary|the control in /proc/\d+/(environ|mem)`)
	each := func(a attempt, may ...*regexp.Regexp) {
		for line := range strings.Lines(a.Detail) {
			ok := false
			for _, m := range may {
				ok = ok || m.MatchString(strings.TrimSuffix(line, "\n"))
			}
			if !ok {
				p.t.Errorf("%s: %s", a.Name, line)
			}
		}
	}
	for _, a := range attempts {
		switch a.Name {
		case "mounts":
			each(a, hostMounts, kernels, whole(place+` \S+ rw`))
			if !strings.Contains(a.Detail, sandbox.Workspace+" ") {
				p.t.Error("the project is not mounted")
			}
		case "processes that can be seen":
			each(a, ownProcess)
		case "found":
			each(a, mayBeFound)
			for _, m := range mustBeFound {
				if !m.MatchString(a.Detail + "\n") {
					p.t.Errorf("the search does not find %s:\n%s", m, a.Detail)
				}
			}
		}
	}
}

// account compares what was tried with the audit log, with what the stub
// got and with every packet that aileron sent.
func (p *person) account(attempts []attempt, sent map[string]int) {
	p.t.Helper()
	want, got := map[string]int{}, map[string]int{}
	for _, a := range attempts {
		if status, ok := strings.CutPrefix(a.Result, "HTTP "); ok {
			want[status+" "+source(a.Name)]++
		} else if a.Result == sshDenied {
			want["400 protocol_violation transparent_connect_tls"]++
		}
	}
	rows := p.rows()
	targets := map[string]string{}
	for _, r := range rows {
		switch {
		case r.Event == "connector.proxy.proxied":
			got[fmt.Sprint(r.Status, " ", r.Source)]++
			if r.Host != "api.echo.example" {
				p.t.Errorf("a row says that a request to %s was answered", r.Host)
			}
		case r.Decision == "rejected":
			got[fmt.Sprint(r.Status, " ", r.Reason, " ", r.Source)]++
			targets[fmt.Sprintf("%s:%d", r.Host, r.Port)] = r.Reason
		}
	}
	for key, n := range want {
		if got[key] != n {
			p.t.Errorf("%d rows of the audit log say %q, want %d", got[key], key, n)
		}
		delete(got, key)
	}
	for key, n := range got {
		p.t.Errorf("%d rows of the audit log say %q, and no client received that", n, key)
	}
	// Who was meant: the name that the client asked DNS for, else the address.
	for _, target := range []string{"169.254.169.254:80", "100.100.100.200:80", "metadata.google.internal:80",
		"1.1.1.1:443", "1.1.1.1:8443", "evil.example:443", "evil.example:2222",
		"cloudflare-dns.com:443", "one.one.one.one:853", "192.0.2.1:80", "evil.example:80", "c2vjcmv0.evil.example:80",
		"192.0.2.7:80", "192.0.2.3:80"} {
		if targets[target] != "host_not_allowed" {
			p.t.Errorf("no row says that %s was refused: %v", target, targets)
		}
	}
	for target, reason := range map[string]string{"1.1.1.1:22": "protocol_violation",
		"mail.evil.example:25": "malformed_request"} {
		if targets[target] != reason {
			p.t.Errorf("no row says that %s was refused: %v", target, targets)
		}
	}

	answers := 0
	for _, s := range p.origin.Seen() {
		answers++
		if s.Auth() != "Bearer "+secret || s.Path != "/echo" {
			p.t.Errorf("the stub saw %+v", s)
		}
	}
	allowed := 0
	for _, a := range attempts {
		if a.Result != answered {
			continue
		}
		allowed++
		if stars := "Bearer " + strings.Repeat("*", len(secret)); !strings.Contains(a.Detail, stars) {
			p.t.Errorf("%s: the credential was not injected and wiped: %s", a.Name, a.Detail)
		}
	}
	if answers != allowed {
		p.t.Errorf("the stub saw %d requests, and %d were answered", answers, allowed)
	}
	own := []string{"tcp " + p.origin.Addr} // to its engine too, where that is elsewhere
	for _, name := range []string{"DOCKER_HOST", "CONTAINER_HOST"} {
		if api, ok := strings.CutPrefix(os.Getenv(name), "tcp://"); ok {
			own = append(own, "tcp "+api)
		}
	}
	for to, n := range sent {
		if !slices.Contains(own, to) {
			p.t.Errorf("%d packets left for %s", n, to)
		}
	}
	if sent["tcp "+p.origin.Addr] == 0 {
		p.t.Error("the watch did not see the connections to the stub: it would see nothing else")
	}
}

// source is what the audit log calls the way of an attempt: TLS in a
// connection, clear text in one, or neither at the proxy's own door.
func source(name string) string {
	switch {
	case strings.HasPrefix(name, "control "), strings.HasPrefix(name, "tls "), strings.HasPrefix(name, "Do"):
		return "transparent_connect_tls"
	case strings.HasPrefix(name, "SOCKS"):
		return "forward_http"
	}
	return "connect_http"
}

// leftovers are the containers that the engine has of this person's sessions.
func (p *person) leftovers() string {
	p.t.Helper()
	if p.engine == sandbox.Native {
		return p.nativeLeftovers()
	}
	words := append(append([]string{}, p.as...), p.engine, "ps", "-a", "--filter", "label=aileron.session", "--format",
		"{{.Names}}")
	out, err := harness.List(exec.Command(words[0], words[1:]...))
	if err != nil {
		p.t.Errorf("%v: %v", words, err)
	}
	var left []string
	for _, r := range p.rows() {
		for name := range strings.FieldsSeq(out) {
			if r.Event == "session.started" && strings.Contains(strings.ToUpper(name), r.Session) {
				left = append(left, name)
			}
		}
	}
	return strings.Join(left, " ")
}

func TestTheManualSaysWhatWasTried(t *testing.T) {
	data := must.Get(os.ReadFile("../../docs/sandbox.md"))(t)
	text := strings.Join(strings.Fields(string(data)), " ")
	for _, s := range rules[1:] {
		if !strings.Contains(text, "| "+s.section+" |") {
			t.Errorf("docs/sandbox.md does not name %q", s.section)
		}
	}
}
