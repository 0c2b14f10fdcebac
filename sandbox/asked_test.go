package sandbox

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/livetree"
)

// asked is a container as the engine is asked for it.
type asked struct {
	container.Config
	HostConfig container.HostConfig
}

// recorder returns an engine of that kind which makes nothing, and what it is
// asked for by the role in a container's name.
func recorder(t *testing.T, kind string, image container.Config) (*Engine, func(role string) asked) {
	t.Helper()
	return refusing(t, kind, image, func(asked) string { return "" })
}

// refusing is a recorder that does not make what why returns a reason for.
func refusing(t *testing.T, kind string, image container.Config, why func(asked) string) (
	*Engine, func(role string) asked,
) {
	t.Helper()
	var mu sync.Mutex
	made := map[string]asked{}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /v1.41/images/{ref...}", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"Id": "sha256:pinned", "Config": image})
	})
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") })
	mux.HandleFunc("GET /v1.41/version", func(w http.ResponseWriter, _ *http.Request) {
		component := map[string]string{"podman": "Podman Engine", "docker": "Engine"}[kind]
		reply(w, map[string]any{"Version": "4.3.1", "Components": []any{map[string]string{"Name": component}}})
	})
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]any{}) })
	mux.HandleFunc("PUT /v1.41/containers/{id}/archive", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1.41/containers/create", func(w http.ResponseWriter, r *http.Request) {
		var a asked
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Error(err)
		}
		if text := why(a); text != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			reply(w, map[string]string{"message": text})
			return
		}
		mu.Lock()
		defer mu.Unlock()
		name := r.URL.Query().Get("name")
		made[name[strings.LastIndexByte(name, '-')+1:]] = a
		reply(w, map[string]any{"Id": "id-of-" + name})
	})
	dir := must.ShortDir(t)
	socket := filepath.Join(dir, "s")
	listener := must.Get(net.Listen("unix", socket))(t)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv(map[string]string{"podman": "CONTAINER_HOST", "docker": "DOCKER_HOST"}[kind], "unix://"+socket)
	e := must.Get(engine.Patience{}.Find(t.Context(), kind))(t)
	t.Cleanup(e.Close)
	return &Engine{Engine: e}, func(role string) asked {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		a, found := made[role]
		if !found {
			t.Fatalf("no container %q was asked for: %v", role, made)
		}
		return a
	}
}

// anyBox returns a box whose directories exist.
func anyBox(t *testing.T) Box {
	t.Helper()
	dir := t.TempDir()
	b := Box{
		Spec:   Spec{Image: Image{Ref: "an/image"}, Command: []string{"agent", "--flag"}, Dir: filepath.Join(dir, "project")},
		Uplink: Uplink{Session: "01SESSION", Sockets: filepath.Join(dir, "sockets"), Binary: filepath.Join(dir, "aileron")},
		mounts: filepath.Join(dir, "mounts"),
	}
	for _, d := range []string{b.Dir, b.Sockets, b.mounts} {
		must.Do(t, os.Mkdir(d, 0o700))
	}
	return b
}

// claim is one property of a container that the seal stands on.
type claim struct {
	what string
	so   bool
}

func check(t *testing.T, a asked, claims []claim) {
	t.Helper()
	for _, c := range claims {
		if !c.so {
			t.Errorf("not so: %s\n%+v\n%+v", c.what, a.Config, a.HostConfig)
		}
	}
}

// confined are the claims that hold for both containers.
func confined(a asked, b Box) []claim {
	h := a.HostConfig
	return []claim{
		{"all capabilities are dropped", slices.Equal(h.CapDrop, []string{"ALL"})},
		{"it is not privileged", !h.Privileged},
		{"it has no group but its user's own", len(h.GroupAdd) == 0},
		{"a program gets no rights by being run", slices.Contains(h.SecurityOpt, "no-new-privileges")},
		{"the seccomp profile is ours", slices.Contains(h.SecurityOpt, "seccomp=THE PROFILE")},
		{"its processes are counted", h.PidsLimit != nil && *h.PidsLimit > 0 && *h.PidsLimit <= 4096},
		{"its descriptors and processes have limits",
			len(h.Ulimits) == 2 && h.Ulimits[0].Name == "nofile" && h.Ulimits[1].Name == "nproc"},
		{"no namespace is the host's",
			h.PidMode == "" && h.IpcMode == "" && h.UTSMode == "" && h.UsernsMode == "" && h.CgroupnsMode == ""},
		{"no device, no volume of another container", len(h.Devices) == 0 && len(h.VolumesFrom) == 0},
		{"no port is published", len(h.PortBindings) == 0 && !h.PublishAllPorts},
		{"no health check is run", a.Healthcheck != nil && slices.Equal(a.Healthcheck.Test, []string{"NONE"})},
		{"its image is the one that was looked at", a.Image == "sha256:pinned"},
		{"its session can be told", a.Labels[labelSession] == b.Session && a.Labels[labelOwner] != ""},
		{"a stop waits for nothing", a.StopTimeout != nil && *a.StopTimeout == 0},
	}
}

// mountAt returns the mount at a place of the container.
func mountAt(a asked, target string) mount.Mount {
	i := slices.IndexFunc(a.HostConfig.Mounts, func(m mount.Mount) bool { return m.Target == target })
	if i < 0 {
		return mount.Mount{}
	}
	return a.HostConfig.Mounts[i]
}

func TestAGatewayIsAskedForWithEachPartOfTheSeal(t *testing.T) {
	for _, kind := range []string{"podman", "docker"} {
		t.Run(kind, func(t *testing.T) {
			e, made := recorder(t, kind, container.Config{})
			b := anyBox(t)
			must.Get(e.createGateway(t.Context(), b, "THE PROFILE"))(t)
			gw := made("gw")
			h, sockets, binary := gw.HostConfig, mountAt(gw, "/run/aileron"), mountAt(gw, "/aileron")
			check(t, gw, append(confined(gw, b), []claim{
				{"it has no network", h.NetworkMode == "none"},
				{"its file system is read-only", h.ReadonlyRootfs},
				{"it gets what it needs for a moment and nothing else",
					slices.Equal(h.CapAdd, []string{"CAP_NET_ADMIN", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"})},
				{"its memory has a limit", h.Memory > 0},
				{"it sees the sockets, read-only", sockets.Source == b.Sockets && sockets.ReadOnly},
				{"it runs our binary, read-only", binary.Source == b.Binary && binary.ReadOnly},
				{"it sees nothing else", len(h.Mounts) == 2 && len(h.Binds) == 0 && len(h.Tmpfs) == 0},
				{"it runs the gateway and nothing of the image",
					slices.Equal(gw.Entrypoint, []string{"/aileron"}) && slices.Equal(gw.Cmd, []string{"gateway"})},
				{"it inherits no environment", slices.Equal(gw.Env, []string{"PATH=/"})},
				{"its role can be told", gw.Labels[labelRole] == "gateway"},
			}...))
		})
	}
}

func TestASandboxIsAskedForWithEachPartOfTheSeal(t *testing.T) {
	for _, kind := range []string{"podman", "docker"} {
		t.Run(kind, func(t *testing.T) {
			e, made := recorder(t, kind, container.Config{User: "agent", Env: []string{"OF=the image"}})
			plantLists(t, e, "agent:x:1000:1000::/home/agent:/bin/sh\n", "agent:x:1000:\n")
			b := anyBox(t)
			b.Env, b.Mask = []string{"HTTPS_PROXY=http://127.0.0.1:3128"}, []string{filepath.Join(b.Dir, ".aileron")}
			must.Get(e.createBox(t.Context(), b, &engine.Container{ID: "the-gateway"}, "THE PROFILE"))(t)
			box := made("box")
			h, names, hosts := box.HostConfig, mountAt(box, "/etc/resolv.conf"), mountAt(box, "/etc/hosts")
			check(t, box, append(confined(box, b), []claim{
				{"its only network is the gateway's", h.NetworkMode == "container:the-gateway"},
				{"no capability is added", len(h.CapAdd) == 0},
				{"it sees the project", mountAt(box, Workspace).Source == b.Dir && box.WorkingDir == Workspace},
				{"it finds names by our stub only", holds(t, names.Source, "nameserver 127.0.0.53\n") && names.ReadOnly},
				{"it knows no address of the host's", holds(t, hosts.Source, "127.0.0.1\tlocalhost") && hosts.ReadOnly},
				{"it sees nothing else, no socket above all", len(h.Mounts) == 3 && len(h.Binds) == 0},
				{"what is hidden is an empty directory", strings.HasPrefix(h.Tmpfs[Workspace+"/.aileron"], "ro,size=4k,mode=0555")},
				{"no other host has a name", len(h.ExtraHosts) == 0 && len(h.DNS) == 0},
				{"the command is its entrypoint",
					slices.Equal(box.Entrypoint, []string{"agent"}) && slices.Equal(box.Cmd, []string{"--flag"})},
				{"its environment is ours", slices.Contains(box.Env, "HTTPS_PROXY=http://127.0.0.1:3128")},
				{"its role can be told", box.Labels[labelRole] == "box"},
			}...))
		})
	}
}

func holds(t *testing.T, path, text string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return strings.Contains(string(data), text)
}

func TestAReadOnlySandboxIsAskedForAsThat(t *testing.T) {
	e, made := recorder(t, "podman", container.Config{})
	b := anyBox(t)
	b.ReadOnly = true
	e.seen.Store(b.Image.id, imagefs.New(imagefs.Tree{}, imagefs.Source{})) // it was looked into
	must.Get(e.createBox(t.Context(), b, &engine.Container{ID: "the-gateway"}, "THE PROFILE"))(t)
	box := made("box")
	var scratch []string
	for at := range box.HostConfig.Tmpfs {
		scratch = append(scratch, at)
	}
	slices.Sort(scratch)
	check(t, box, []claim{
		{"its file system is read-only", box.HostConfig.ReadonlyRootfs},
		{"what is for scratch is in memory", slices.Equal(scratch, []string{"/run", "/tmp", "/var/tmp"})},
	})
}

// The sandbox's user is another one, and reads what a careful umask would hide.
func TestATreeIsReadableWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0o022, 0o077} {
		dir := filepath.Join(t.TempDir(), "tree")
		old := syscall.Umask(umask)
		err := livetree.Write(dir, []File{{Path: "actions", Mode: fs.ModeDir | 0o755},
			{Path: "connectors/hub/a/b@1.0.0/manifest.toml", Mode: 0o644, Data: []byte("x")}})
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			info, statErr := os.Lstat(path)
			want := fs.FileMode(0o644)
			if d.IsDir() {
				want = 0o755
			}
			if err != nil || statErr != nil || info.Mode().Perm() != want {
				t.Errorf("umask %o: %s has the mode %v, want %v", umask, path, info.Mode(), want)
			}
			return nil
		})
	}
}

func TestATreeHasNoFileOutside(t *testing.T) {
	err := livetree.Write(filepath.Join(t.TempDir(), "tree"), []File{{Path: "../x", Mode: 0o644}})
	if err == nil || !strings.Contains(err.Error(), "not below its directory") {
		t.Errorf("a file outside: %v", err)
	}
}

// A tree of hundreds of files is in memory, unless another sandbox may see it there, or write to it.
func TestATreeIsInMemory(t *testing.T) {
	b := anyBox(t)
	if dir := b.makeTreesDir(); dir != "" {
		t.Errorf("without a tree there is %s", dir)
	}
	b.trees = []Tree{{Target: "/t", Files: []File{{Path: "x", Mode: 0o644, Data: []byte("x")}}}}
	dir := b.makeTreesDir()
	if dir == "" {
		t.Skip("this host has no /dev/shm with room: trees are on the disk")
	}
	info, err := os.Lstat(dir)
	if err != nil || info.Mode() != fs.ModeDir|0o700 || filepath.Dir(dir) != "/dev/shm" {
		t.Errorf("%s: %v, %v; want a directory of ours in /dev/shm", dir, info, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Error(err)
	}
	if dir := engine.MakeDirInMemory(1 << 60); dir != "" {
		t.Errorf("it has room for everything in %s", dir)
	}
	shared, mounted := b, b
	shared.Dir, mounted.Spec.Mounts = "/dev/shm", []engine.Mount{{Source: "/dev", Target: "/d"}}
	for what, b := range map[string]box{"the project holds it": shared, "a mount does": mounted} {
		if dir := b.makeTreesDir(); dir != "" {
			_ = os.Remove(dir)
			t.Errorf("%s, and there is %s", what, dir)
		}
	}
}

// An engine in a container of its own has another /dev/shm.
func TestATreeIsOnTheDiskWhereTheEngineSeesNoMemory(t *testing.T) {
	memory := t.TempDir()
	e, made := refusing(t, "docker", container.Config{}, func(a asked) string {
		if at := mountAt(a, "/t").Source; strings.HasPrefix(at, memory) {
			return fmt.Sprintf("invalid mount config for type %q: bind source path does not exist: %s", "bind", at)
		}
		return ""
	})
	b := anyBox(t)
	b.treesDir = memory
	b.trees = []Tree{{Target: "/t", Files: []File{{Path: "x", Mode: 0o644, Data: []byte("the tree")}}}}
	var err error
	if b.mounted, err = mountTrees(b); err != nil {
		t.Fatal(err)
	}
	must.Get(e.createBox(t.Context(), b, &engine.Container{ID: "the-gateway"}, "THE PROFILE"))(t)
	at := mountAt(made("box"), "/t")
	if at.Source != filepath.Join(b.mounts, "tree0") || !at.ReadOnly || !holds(t, at.Source+"/x", "the tree") {
		t.Errorf("the tree is mounted from %+v", at)
	}
}

func TestASandboxLeavesAShareOfTheMachineFree(t *testing.T) {
	limits := func(memory int64, cpus float64) engine.Limits { return engine.Limits{Memory: memory, CPUs: cpus} }
	for _, c := range []struct {
		machine, want engine.Limits
		text          string
	}{
		{limits(16<<30, 8), limits(12<<30, 7.75), "12 GiB of memory, without swap, and 7.75 CPUs"},
		{limits(1<<30, 1), limits(768<<20, 0.75), "768 MiB of memory, without swap, and 0.75 CPUs"},
		{limits(25276502016, 2), limits(18957376512, 1.75), "17.7 GiB of memory, without swap, and 1.75 CPUs"},
	} {
		got := Share(c.machine)
		if got != c.want || got.String() != c.text {
			t.Errorf("Share of %v = %v (%s), want %v (%s)", c.machine, got, got, c.want, c.text)
		}
	}
	if got := limits(64<<30, 2).Within(limits(16<<30, 8)); got != limits(0, 2) {
		t.Errorf("Within = %v, want no limit of memory: the machine has less", got)
	}
	if got := (engine.Limits{}).String(); got != "all memory and all CPUs" {
		t.Errorf("no limits are described as %q", got)
	}
}
