// Package kube runs what aileron kube render prints, as far as Podman plays it: real containers of the rendered Pods in
// network namespaces that lead to a node, which is this process's own. Packet rules on the node stand in for a
// NetworkPolicy.
package kube

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/spec/store"
)

// inside is the variable that is set where the tests are a node: its value is the built aileron.
const inside = "AILERON_KUBE_TEST_BINARY"

var binary string // the built aileron

func TestMain(m *testing.M) {
	if binary = os.Getenv(inside); binary != "" {
		os.Exit(m.Run())
	}
	os.Exit(harness.Run(m, "kube", map[string]string{"aileron": "../../cmd/aileron"},
		func(dir string) { binary = filepath.Join(dir, "aileron") }))
}

const (
	echoDir  = "../testdata/connectors/echo"
	gitHost  = "git.example"
	internet = "1.1.1.1"
	testKey  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// node is a machine of a cluster, and what is on it.
type node struct {
	t      *testing.T
	env    []string // of Podman
	name   string   // begins all names
	shared string   // a directory with what a cluster's Secrets and ConfigMaps hold
	secret string
	origin *stub.Server
	pods   []string
}

// onNode runs claim in a network of its own.
func onNode(t *testing.T, claim func(*node)) {
	t.Helper()
	if os.Getenv(inside) == "" {
		harness.Turn(t)
		harness.NeedEngine(t, "podman")
		recipes.Need(t, "podman", recipes.Toolbox())
		harness.TestApart(t, inside+"="+binary, syscall.CLONE_NEWNET)
		return
	}
	must.Get(harness.Loopback(netip.MustParseAddr(internet)))(t)
	must.Do(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	n := &node{t: t, env: harness.EngineEnv(t), name: fmt.Sprintf("aileron-kube-test-%d", os.Getpid()),
		shared: must.OpenDir(t), secret: harness.NewSecret()}
	n.origin = stub.Start(t, stub.Script{Token: n.secret, Services: map[string]http.Handler{
		gitHost: http.FileServer(http.Dir(n.repository()))}})
	n.grant()
	n.build()
	claim(n)
}

// repository returns a directory with a repository that git reads over plain HTTP.
func (n *node) repository() string {
	dir := n.t.TempDir()
	script := `git init -q -b main work && cd work && echo hello >README && git add README &&
		git -c user.name=t -c user.email=t@t.example commit -qm first && cd .. &&
		git clone -q --bare work repo.git && git -C repo.git update-server-info`
	cmd := exec.CommandContext(n.t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("make a repository: %v\n%s", err, out)
	}
	return dir
}

// grant writes what the plane reads: grants, their secret, the origin's root, and the key of the uplink.
func (n *node) grant() {
	n.t.Helper()
	must.Do(n.t, os.Mkdir(filepath.Join(n.shared, "grants"), 0o755))
	harness.Copy(n.t, echoDir, filepath.Join(n.shared, "grants", "echo"))
	document := fmt.Sprintf("[[connector]]\ndir = \"echo\"\nhash = %q\nsecret.file = \"token\"\n",
		must.Get(store.Read(echoDir))(n.t).Hash)
	for name, data := range map[string]string{
		"grants/grants.toml": document, "grants/token": n.secret, "uplink/key": testKey,
		"grants/roots.pem": string(must.Get(os.ReadFile(n.origin.Roots))(n.t)),
	} {
		path := filepath.Join(n.shared, name)
		must.Do(n.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(n.t, os.WriteFile(path, []byte(data), 0o644))
	}
	must.Do(n.t, exec.CommandContext(n.t.Context(), "chmod", "-R", "a+rX", n.shared).Run())
}

// podman runs a command of Podman, and returns what it printed.
func (n *node) podman(args ...string) (string, error) {
	cmd := exec.CommandContext(context.WithoutCancel(n.t.Context()), "podman", args...)
	cmd.Env = n.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (n *node) must(args ...string) string {
	n.t.Helper()
	out, err := n.podman(args...)
	if err != nil {
		n.t.Fatalf("podman %q: %v\n%s", args, err, out)
	}
	return out
}

func (n *node) image() string { return "localhost/" + n.name + ":1" }

// build makes the image: the program, and the directories on which volumes are mounted.
func (n *node) build() {
	n.t.Helper()
	dir := n.t.TempDir()
	for _, d := range []string{"run/aileron", "run/aileron-public", "var/lib/aileron"} {
		must.Do(n.t, os.MkdirAll(filepath.Join(dir, "owned", d), 0o755))
	}
	must.Do(n.t, exec.CommandContext(n.t.Context(), "cp", binary, filepath.Join(dir, "aileron")).Run())
	dockerfile := "FROM scratch\nCOPY aileron /\nCOPY --chown=65532:65532 owned/ /\nENTRYPOINT [\"/aileron\"]\n"
	must.Do(n.t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600))
	n.must("build", "-q", "-t", n.image(), dir)
	n.t.Cleanup(func() {
		for _, pod := range n.pods {
			n.must("pod", "rm", "-f", "-t", "0", "--ignore", pod)
		}
		n.must("rmi", "-f", n.image())
	})
}

// addr is the address of the Pod with a number, and gateway that of the node beside it.
func addr(i int) string    { return fmt.Sprintf("10.244.%d.2", i) }
func gateway(i int) string { return fmt.Sprintf("10.244.%d.1", i) }

// attach adds to the network of a process a device that leads to the node, as a network plugin does.
func (n *node) attach(pid string, i int) {
	n.t.Helper()
	run := func(name string, args ...string) {
		n.t.Helper()
		if out, err := exec.CommandContext(n.t.Context(), name, args...).CombinedOutput(); err != nil {
			n.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	device := fmt.Sprintf("pod%d", i)
	run("ip", "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", pid)
	run("ip", "addr", "add", gateway(i)+"/24", "dev", device)
	run("ip", "link", "set", device, "up")
	for _, line := range []string{"link set lo up", "addr add " + addr(i) + "/24 dev eth0", "link set eth0 up",
		"route add default via " + gateway(i)} {
		run("nsenter", append([]string{"-t", pid, "-n", "ip"}, strings.Fields(line)...)...)
	}
}

// expose has the origin at an address of the node too.
func (n *node) expose(at string) {
	n.t.Helper()
	l := must.Get(net.Listen("tcp", at))(n.t)
	n.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				to, err := net.Dial("tcp", n.origin.Addr)
				if err != nil {
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(to, conn); _ = to.(*net.TCPConn).CloseWrite() }()
				_, _ = io.Copy(conn, to)
			}()
		}
	}()
}

// fence is what stands in for a NetworkPolicy without egress: of what comes from a Pod, the node passes on only what
// belongs to a connection to it.
func (n *node) fence(device string) (remove func()) {
	n.t.Helper()
	c := must.Get(nftables.New())(n.t)
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "policy"})
	for hook, name := range map[*nftables.ChainHook]string{
		nftables.ChainHookInput: "input", nftables.ChainHookForward: "forward",
	} {
		chain := c.AddChain(&nftables.Chain{Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook,
			Priority: nftables.ChainPriorityFilter})
		from := make([]byte, unix.IFNAMSIZ)
		copy(from, device)
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: from},
			&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Xor: make([]byte, 4),
				Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: make([]byte, 4)},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	}
	must.Do(n.t, c.Flush())
	return func() { c.DelTable(table); must.Do(n.t, c.Flush()) }
}

// render returns the Pods that aileron prints.
func (n *node) render(args ...string) (pods []corev1.Pod) {
	n.t.Helper()
	args = append([]string{"kube", "render", n.name, "--image=" + n.image(),
		"--agent-image=" + recipes.Toolbox().Ref}, args...)
	cmd := exec.CommandContext(n.t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "AILERON_HOME="+n.t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("aileron %q: %v", args, err)
	}
	for _, doc := range strings.Split(string(out), "\n---\n") {
		var kind metav1.TypeMeta
		must.Do(n.t, yaml.Unmarshal([]byte(doc), &kind))
		if kind.Kind == "Pod" {
			var pod corev1.Pod
			must.Do(n.t, yaml.UnmarshalStrict([]byte(doc), &pod))
			pods = append(pods, pod)
		}
	}
	return pods
}

// adapt changes a Pod to what Podman 4.3 can play. It has no native sidecars: it runs init containers to their end, and
// refuses probes in them; so they become containers, which nothing orders, and which are restarted until what they wait
// for is there. It has neither volumes of Secrets nor projected ones, and only root may write to its emptyDirs, where a
// kubelet lets every user. It does not know the node's address. In a network that it does not make, it ignores the
// Pod's sysctls (see play) and its dnsConfig.
func (n *node) adapt(pod *corev1.Pod) {
	spec := &pod.Spec
	spec.Containers = append(spec.InitContainers, spec.Containers...)
	spec.InitContainers, spec.RestartPolicy = nil, corev1.RestartPolicyOnFailure
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.RestartPolicy, c.StartupProbe, c.ReadinessProbe, c.LivenessProbe, c.Ports = nil, nil, nil, nil, nil
		for j, v := range c.Env {
			if v.ValueFrom != nil {
				c.Env[j] = corev1.EnvVar{Name: v.Name, Value: gateway(1)}
			}
		}
		c.Resources = corev1.ResourceRequirements{} // a machine of tests does not delegate control groups
	}
	if spec.DNSConfig != nil {
		path, kind := filepath.Join(n.shared, "resolv.conf"), corev1.HostPathFile
		text := "nameserver " + spec.DNSConfig.Nameservers[0] + "\n"
		must.Do(n.t, os.WriteFile(path, []byte(text), 0o644))
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "resolv", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}})
		agent := container(pod, "agent")
		agent.VolumeMounts = append(agent.VolumeMounts, corev1.VolumeMount{Name: "resolv", MountPath: "/etc/resolv.conf"})
	}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		path := filepath.Join(n.shared, v.Name)
		if v.HostPath != nil {
			continue
		}
		if v.EmptyDir != nil {
			path = filepath.Join(n.shared, pod.Name, v.Name)
			must.Do(n.t, os.MkdirAll(path, 0o755))
			must.Do(n.t, os.Chmod(path, 0o777))
		}
		kind := corev1.HostPathDirectory
		v.VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}
	}
}

// container returns a container of a Pod.
func container(pod *corev1.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	return &pod.Spec.Containers[i]
}

// plane has a plane reach the origin.
func (n *node) plane(c *corev1.Container, origin string) {
	c.Args = append(c.Args, "--resolve="+stub.Echo+":443:"+origin, "--resolve="+gitHost+":443:"+origin,
		"--allow="+gitHost, "--upstream-ca=/etc/aileron/grants/roots.pem")
}

// play starts a Pod, whose network is there before its containers are, as in a cluster.
func (n *node) play(pod *corev1.Pod, i int) {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "pod.yaml")
	must.Do(n.t, os.WriteFile(file, must.Get(yaml.Marshal(pod))(n.t), 0o600))
	n.pods = append(n.pods, pod.Name)
	n.must("kube", "play", "--network", "none", "--start=false", file)
	infra := strings.TrimSpace(n.must("pod", "inspect", "-f", "{{.InfraContainerID}}", pod.Name))
	n.must("start", infra)
	pid := strings.TrimSpace(n.must("inspect", "-f", "{{.State.Pid}}", infra))
	n.attach(pid, i)
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		path := "/proc/sys/" + strings.ReplaceAll(s.Name, ".", "/")
		cmd := exec.CommandContext(n.t.Context(), "nsenter", "-t", pid, "-n", "sh", "-c", `echo "$1" >"$0"`, path, s.Value)
		if out, err := cmd.CombinedOutput(); err != nil {
			n.t.Fatalf("set %s: %v\n%s", s.Name, err, out)
		}
	}
	n.must("pod", "start", pod.Name)
}

// awaitExec waits until a command in a container succeeds.
func (n *node) awaitExec(container string, args ...string) {
	n.t.Helper()
	harness.WaitFor(n.t, container+": "+strings.Join(args, " "), func() bool {
		_, err := n.podman(append([]string{"exec", container}, args...)...)
		return err == nil
	})
}

// kill kills the program of a container, which is restarted as its Pod says.
func (n *node) kill(container string) {
	n.t.Helper()
	pid := strings.TrimSpace(n.must("inspect", "-f", "{{.State.Pid}}", container))
	must.Do(n.t, syscall.Kill(must.Get(strconv.Atoi(pid))(n.t), syscall.SIGKILL))
}

// sh runs a line in the agent's container, and returns what it printed.
func (n *node) sh(agent, line string) string {
	n.t.Helper()
	out, _ := n.podman("exec", agent, "sh", "-c", line)
	if strings.Contains(out, n.secret) || strings.Contains(out, testKey) {
		n.t.Errorf("%s printed a secret: %s", line, out)
	}
	return out
}

// works has real clients use what is granted, and what is not.
func (n *node) works(agent string) {
	n.t.Helper()
	url := "https://" + stub.Echo + "/echo"
	direct := `env -u HTTPS_PROXY -u https_proxy -u HTTP_PROXY -u http_proxy `
	for _, prefix := range []string{"", direct} {
		if out := n.sh(agent, prefix+"curl -sS -m 60 "+url); !strings.Contains(out, `"path":"/echo"`) {
			n.t.Errorf("%scurl: %s", prefix, out)
		}
		seen := n.origin.Seen()
		if len(seen) == 0 || seen[len(seen)-1].Auth() != "Bearer "+n.secret {
			n.t.Errorf("%scurl: the service saw %+v", prefix, seen)
		}
		line := "rm -rf /tmp/c && " + prefix + "git clone -q https://" + gitHost + "/repo.git /tmp/c && cat /tmp/c/README"
		if out := n.sh(agent, line); out != "hello\n" {
			n.t.Errorf("%sgit: %s", prefix, out)
		}
		out := n.sh(agent, prefix+"curl -sS -m 60 https://elsewhere.example/")
		if !strings.Contains(out, "host_not_allowed") {
			n.t.Errorf("%scurl to a host that is not allowed: %s", prefix, out)
		}
	}
	for _, line := range []string{"ls /run/aileron /var/lib/aileron /etc/aileron/grants /etc/aileron/uplink",
		"cat /proc/net/nf_conntrack", "echo x >/etc/aileron/proxy/ca.pem"} {
		if out := n.sh(agent, line+" 2>/dev/null && echo there"); strings.Contains(out, "there") {
			n.t.Errorf("in the agent's container, %s: %s", line, out)
		}
	}
}

// One Pod: the plane alone uses the network that all three share.
func TestASidecarServesAndSealsAPod(t *testing.T) {
	onNode(t, func(n *node) {
		pod := n.render("--", "sleep", "infinity")[0]
		n.adapt(&pod)
		const origin = "10.244.1.1:8443"
		n.plane(container(&pod, "plane"), origin)
		n.play(&pod, 1)
		n.expose(origin)
		agent, gateway, plane := pod.Name+"-agent", pod.Name+"-gateway", pod.Name+"-plane"
		n.awaitExec(plane, "/aileron", "serve", "--check", "--dir=/run/aileron")
		n.awaitExec(gateway, "/aileron", "gateway", "--pod", "--check")
		n.works(agent)
		for line, want := range map[string]string{
			"curl -sS -m 20 --noproxy '*' -k https://" + origin + "/echo": "host_not_allowed",
			"curl -sS -m 20 --noproxy '*' -k https://" + internet + "/":   "host_not_allowed",
			"id -u": "1000",
			"curl -sS -m 20 --noproxy '*' --interface eth0 -k https://" + origin + "/echo || echo failed": "failed",
		} {
			if out := n.sh(agent, line); !strings.Contains(out, want) || strings.Contains(out, `"path"`) {
				t.Errorf("%s: %s, want %s", line, out, want)
			}
		}
		// The gateway is killed, and comes back.
		n.kill(gateway)
		if out := n.sh(agent, "curl -sS -m 5 --noproxy '*' -k https://"+origin+"/echo"); strings.Contains(out, `"path"`) {
			t.Errorf("past a gateway that was killed the agent got %s", out)
		}
		n.awaitExec(gateway, "/aileron", "gateway", "--pod", "--check")
		n.works(agent)
		// The plane is killed: nothing is let through meanwhile, and the next one serves.
		n.kill(plane)
		if out := n.sh(agent, "curl -sS -m 5 --noproxy '*' -k https://"+origin+"/echo"); strings.Contains(out, `"path"`) {
			t.Errorf("past a plane that was killed the agent got %s", out)
		}
		n.awaitExec(plane, "/aileron", "serve", "--check", "--dir=/run/aileron")
		n.works(agent)
	})
}

// Two Pods, neither with a capability: the fence is down at first.
func TestTwoPodsMeetBehindAFence(t *testing.T) {
	onNode(t, func(n *node) {
		pods := n.render("--shape=pods", "--", "sleep", "infinity")
		for i := range pods {
			n.adapt(&pods[i])
		}
		agentPod, planePod := &pods[0], &pods[1]
		p := container(planePod, "plane")
		const origin = "10.244.2.1:8443"
		n.plane(p, origin)
		p.Args[slices.Index(p.Args, "--dial")+1] = addr(1) + ":8443" // there is no DNS of a cluster
		n.play(agentPod, 1)
		n.play(planePod, 2)
		n.expose(origin)
		agent, relay, plane := agentPod.Name+"-agent", agentPod.Name+"-relay", planePod.Name+"-plane"
		check := []string{"exec", relay, "/aileron", "gateway", "--uplink-key=/etc/aileron/uplink/key", "--uplink-listen=:1",
			"--check"}
		harness.WaitFor(t, "the relay to find the fence open", func() bool {
			logs, _ := n.podman("logs", relay)
			return strings.Contains(logs, "the internet (tcp 1.1.1.1:443)")
		})
		if out, err := n.podman(check...); err == nil {
			t.Errorf("a relay whose fence is open is ready: %s", out)
		}
		down := n.fence("pod1")
		n.awaitExec(relay, check[2:]...)
		n.awaitExec(agent, "curl", "-sS", "-m", "5", "https://"+stub.Echo+"/echo")
		n.works(agent)
		past := "curl -sS -m 3 --noproxy '*' -k https://" + internet + "/ || echo failed"
		if out := n.sh(agent, past); !strings.Contains(out, "failed") {
			t.Errorf("past the relay: %s", out)
		}
		if out := n.sh(agent, "getent hosts "+stub.Echo); !strings.HasPrefix(out, "127.64.") {
			t.Errorf("the name has the address %s", out)
		}
		// A client of the uplink without the session's certificate: the agent itself, which reaches the port.
		n.sh(agent, "curl -sS -m 5 --noproxy '*' --no-alpn -k https://"+addr(1)+":8443/")
		harness.WaitFor(t, "the refusal of a client without a certificate", func() bool {
			logs, _ := n.podman("logs", relay)
			return strings.Contains(logs, "a client of the uplink was refused") &&
				strings.Contains(logs, "it has no certificate")
		})
		for _, killed := range []string{plane, relay} {
			stream := make(chan string, 1)
			go func() {
				stream <- n.sh(agent, "curl -sS -m 60 https://"+stub.Echo+"/stall; echo ended with $?")
			}()
			stalled := func() bool {
				seen := n.origin.Seen()
				return len(seen) > 0 && seen[len(seen)-1].Path == "/stall"
			}
			harness.WaitFor(t, "a response that is under way", stalled)
			n.kill(killed)
			if out := <-stream; !strings.Contains(out, "ended with") || strings.Contains(out, "ended with 0") {
				t.Errorf("%s was killed in the middle of a response: %s", killed, out)
			}
			n.awaitExec(agent, "curl", "-sS", "-f", "-m", "5", "https://"+stub.Echo+"/echo")
			n.works(agent)
		}
		down()
		harness.WaitFor(t, "the end of the relay whose fence has fallen", func() bool {
			logs, _ := n.podman("logs", relay)
			return strings.Contains(logs, "the fence has fallen")
		})
	})
}
