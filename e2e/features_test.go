package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// featureRegistry is a registry of container images on loopback, with one version of one feature: what the protocol of
// a registry needs for that and nothing else. The reference implementation speaks to the name localhost alone without
// TLS.
type featureRegistry struct {
	t        *testing.T
	server   *httptest.Server
	manifest atomic.Pointer[[]byte]
	blob     atomic.Pointer[[]byte]
	requests atomic.Int64
	authed   atomic.Int64 // requests with a credential
}

func newFeatureRegistry(t *testing.T) *featureRegistry {
	r := &featureRegistry{t: t}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		if req.Header.Get("Authorization") != "" {
			r.authed.Add(1)
		}
		switch manifest, blob := *r.manifest.Load(), *r.blob.Load(); {
		case strings.HasPrefix(req.URL.Path, "/v2/tools/hello/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write(manifest)
		case req.URL.Path == "/v2/tools/hello/blobs/"+digestOf(blob):
			_, _ = w.Write(blob)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(r.server.Close)
	return r
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ref is the name of the feature.
func (r *featureRegistry) ref() string {
	_, port, err := net.SplitHostPort(r.server.Listener.Addr().String())
	must.Do(r.t, err)
	return "localhost:" + port + "/tools/hello:1"
}

// publish makes the version another one.
func (r *featureRegistry) publish(metadata, install string) {
	r.t.Helper()
	var blob bytes.Buffer
	zip := gzip.NewWriter(&blob)
	archive := tar.NewWriter(zip)
	for name, text := range map[string]string{"./devcontainer-feature.json": metadata, "./install.sh": install} {
		must.Do(r.t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}))
		must.Get(archive.Write([]byte(text)))(r.t)
	}
	must.Do(r.t, archive.Close())
	must.Do(r.t, zip.Close())
	data := blob.Bytes()
	manifest := must.Get(json.Marshal(map[string]any{"schemaVersion": 2,
		"mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config":    map[string]any{"mediaType": "application/vnd.devcontainers", "digest": digestOf(nil), "size": 0},
		"layers": []any{map[string]any{"mediaType": "application/vnd.devcontainers.layer.v1+tar", "digest": digestOf(data),
			"size": len(data)}},
		"annotations": map[string]any{"dev.containers.metadata": metadata}}))(r.t)
	r.blob.Store(&data)
	r.manifest.Store(&manifest)
}

// referenceCLI returns the directory of the reference implementation's program.
func referenceCLI(t *testing.T) string {
	t.Helper()
	harness.NeedNPM(t)
	dir, err := harness.NodeModules("devcontainer-cli", "testdata/devcontainer")
	if err != nil {
		harness.Need(t, "the packages of testdata/devcontainer, which cannot be installed: "+err.Error())
	}
	return filepath.Join(dir, "node_modules", ".bin")
}

// A local feature sends nothing to a machine that no person was asked about: the metadata that the reference
// implementation reads is aileron's, also where JavaScript reads a key in another way.
func TestALocalFeatureReachesNoRegistryUnasked(t *testing.T) {
	bin := referenceCLI(t)
	u := composing(t, "podman")
	r := newFeatureRegistry(t)
	r.publish(`{"id": "hello", "version": "1.0.0"}`, "#!/bin/sh\n")
	u.write(".devcontainer/devcontainer.json", image(`{"image": "BASE", "features": {"./own": {}}}`))
	must.Do(t, os.Mkdir(filepath.Join(u.project, ".devcontainer", "own"), 0o755))
	u.write(".devcontainer/own/install.sh", "#!/bin/sh\n")
	for metadata, want := range map[string]string{
		`{"id": "own", "version": "1.0.0", "__proto__": {"dependsOn": {"` + r.ref() + `": {}}}}`: `the key "__proto__"`,
		`{"id": "own", "version": "1.0.0", "__proto__": {"installsAfter": ["` + r.ref() + `"]}}`: `the key "__proto__"`,
		`{"id": "own", "version": "1.0.0", "installsAfter": ["` +
			r.ref() + `"]}`: `fetch the feature "` + r.ref() + `", which "./own" names`,
	} {
		u.write(".devcontainer/own/devcontainer-feature.json", metadata)
		cmd := u.command("sandbox", "build", "--sandbox=podman", "--dir", u.project)
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		got := finish(t, cmd)
		contains(t, metadata, got.err, want)
		if n := r.requests.Load(); got.code != 1 || n != 0 {
			t.Errorf("%s: exit %d, %d requests to the registry", metadata, got.code, n)
		}
	}
}

// Features are fetched wherever the configuration lies. One that asks for too much is refused after its fetch.
func TestFeaturesOfEachPlaceOfAConfigurationAreFetched(t *testing.T) {
	bin := referenceCLI(t)
	for at, ref := range map[string]string{".devcontainer/go/devcontainer.json": "./own", ".devcontainer.json": ""} {
		u := composing(t, "podman")
		r := newFeatureRegistry(t)
		r.publish(`{"id": "hello", "version": "1.0.0", "privileged": true}`, "#!/bin/sh\n")
		own := filepath.Join(".devcontainer", "go", "own")
		if ref == "" {
			own, ref = filepath.Join(".devcontainer", "own"), "./.devcontainer/own"
		}
		must.Do(t, os.MkdirAll(filepath.Join(u.project, own), 0o755))
		u.write(at, image(`{"image": "BASE", "features": {"`+ref+`": {}, "`+r.ref()+`": {}}}`))
		u.write(filepath.Join(own, "install.sh"), "#!/bin/sh\n")
		u.write(filepath.Join(own, "devcontainer-feature.json"), `{"id": "own", "version": "1.0.0", "capAdd": ["ALL"]}`)
		cmd := u.command("sandbox", "build", "--sandbox=podman", "--trust-project", "--dir", u.project)
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		got := finish(t, cmd)
		if contains(t, at, got.err, "features."+ref+".capAdd", "features."+r.ref()+".privileged"); got.code != 1 {
			t.Errorf("%s: exit %d", at, got.code)
		}
	}
}

// Features of a project and of a registry are fetched by the reference implementation after consent, and installed by
// aileron's own Dockerfile after another one to what was fetched: its bytes, and not its tag.
func TestFeaturesAreALayerOfADevcontainersImage(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			harness.PodmanIsEnough(t, engine)
			bin := referenceCLI(t)
			u := composing(t, engine)
			r := newFeatureRegistry(t)
			publish := func(word string) {
				r.publish(`{"id": "hello", "version": "1.0.0", "name": "Hello",
					"options": {"word": {"type": "string", "default": "d"}},
					"containerEnv": {"PATH": "/opt/hello:${PATH}"}, "postCreateCommand": "hello >order"}`,
					"#!/bin/sh\nset -e\nmkdir -p /opt/hello\nprintf '#!/bin/sh\\necho hello "+word+" %s %s\\n' \"$WORD\" "+
						"\"$_REMOTE_USER:$_REMOTE_USER_HOME\" >/opt/hello/hello\nchmod 0755 /opt/hello/hello\n")
			}
			publish("one")
			u.write(".devcontainer/devcontainer.json", image(`{"image": "BASE", "postCreateCommand": "echo own >>order",
				"features": {"`+r.ref()+`": {"word": "it is"}, "./own": {}}}`))
			must.Do(t, os.Mkdir(filepath.Join(u.project, ".devcontainer", "own"), 0o755))
			u.write(".devcontainer/own/devcontainer-feature.json", `{"id": "own", "version": "0.1.0",
				"options": {"flag": {"type": "boolean", "default": true}}}`)
			u.write(".devcontainer/own/install.sh", "#!/bin/sh\n. ./lib\necho \"$(id -u) $FLAG $LIB\" >/opt/own\n")
			u.write(".devcontainer/own/lib", "LIB=lib\n")
			with := func(path string, args ...string) result {
				cmd := u.command(append(args, "--dir", u.project)...)
				cmd.Env = append(cmd.Env, "PATH="+path)
				return finish(t, cmd)
			}
			start := func(path string, flags ...string) result {
				args := append(append([]string{"sandbox", "run"}, u.reach()...), flags...)
				cmd := u.command(append(args, "--sandbox="+engine, "--dir", u.project, "--", "sh", "-c",
					"hello; cat /opt/own order; rm order; id -un; ls -d /tmp/aileron-features")...)
				cmd.Env = append(cmd.Env, "PATH="+path, "GITHUB_TOKEN="+secret)
				return finish(t, cmd)
			}
			alone := os.Getenv("PATH")
			path := bin + ":" + alone

			none := start(alone, "--trust-project")
			contains(t, "without the program", none.err, "there is no devcontainer on the PATH",
				"npm install -g @devcontainers/cli")
			plan := with(path, "sandbox", "plan")
			contains(t, "the plan", plan.out, "feature: "+r.ref()+", which is not fetched yet")
			refused := start(path)
			contains(t, "without consent", refused.err, `a person must agree to it first: fetch the feature "`+r.ref()+`"`)
			if n := r.requests.Load(); none.code != 1 || refused.code != 1 || n != 0 {
				t.Errorf("without consent: exit %d and %d, %d requests to the registry", none.code, refused.code, n)
			}

			ran := start(path, "--trust-project")
			home := "agent:/home/agent"
			want := "hello one it is " + home + "\n0 true lib\nhello one it is " + home + "\nown\n"
			if ran.code != 2 || !strings.HasPrefix(ran.out, want) { // of ls: the build leaves nothing
				t.Fatalf("exit %d, %q, want %q\n%s", ran.code, ran.out, want, ran.err)
			}
			contains(t, "the lines", ran.err, "fetching the features", "postCreateCommand of the feature "+r.ref())
			if r.authed.Load() != 0 {
				t.Error("the registry was sent a credential")
			}
			plan = with(alone, "sandbox", "plan")
			contains(t, "the plan", plan.out, "feature: "+r.ref()+" 1.0.0, "+digestOf(*r.manifest.Load()))

			// It is the same without the program, the registry, and whatever its tag stands for by now.
			publish("two")
			again := start(alone, "--sandbox-build=never")
			if again.code != 2 || !strings.HasPrefix(again.out, want) {
				t.Errorf("the next start: exit %d, %q\n%s", again.code, again.out, again.err)
			}
			// What is fetched anew is asked about anew.
			anew := with(path, "sandbox", "build", "--sandbox="+engine)
			if anew.code != 1 {
				t.Errorf("another content of the tag: exit %d\n%s", anew.code, anew.err)
			}
			contains(t, "another content", anew.err, "a person must agree to it first", `install the feature "`+r.ref()+`"`)
			u.write(".devcontainer/own/lib", "LIB=other\n")
			changed := start(alone)
			contains(t, "another file of a feature", changed.err, "there is no devcontainer on the PATH")

			r.publish(`{"id": "hello", "privileged": true}`, "#!/bin/sh\n")
			wide := start(path, "--trust-project")
			contains(t, "a feature that widens", wide.err, "privileged", "it breaks the seal of the sandbox")
			if left := u.leftovers(); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// An agent by name runs on an image with features, as one more layer: the variables and the commands of the features
// apply, and the layer is another one when a feature is.
func TestAnAgentIsPutOnAnImageWithFeatures(t *testing.T) {
	harness.Turn(t)
	bin := referenceCLI(t)
	const engine, agent = "podman", "opencode"
	u := composingFor(t, engine, recipes.Base(), stub.Script{}, interactives[agent].connector)
	recipes.Need(t, engine, recipes.Agent(agent))
	u.write(".devcontainer/devcontainer.json", image(`{"image": "BASE", "features": {"./own": {}}}`))
	must.Do(t, os.Mkdir(filepath.Join(u.project, ".devcontainer", "own"), 0o755))
	u.write(".devcontainer/own/devcontainer-feature.json", `{"id": "own", "version": "0.1.0",
		"containerEnv": {"PATH": "/opt/own:${PATH}"}, "postCreateCommand": "own >order; command -v `+agent+` >>order"}`)
	install := func(word string) {
		u.write(".devcontainer/own/install.sh", "#!/bin/sh\nset -e\nmkdir -p /opt/own\n"+
			"printf '#!/bin/sh\\necho "+word+" $(id -un)\\n' >/opt/own/own\nchmod 0755 /opt/own/own\n")
	}
	with := func(path string, args ...string) result {
		cmd := u.command(args...)
		cmd.Env = append(cmd.Env, "PATH="+path)
		return finish(t, cmd)
	}
	alone := os.Getenv("PATH")
	path := bin + ":" + alone
	launch := func(path string, flags ...string) result {
		args := append([]string{"launch", "--sandbox=" + engine, "--keep=false", "--dir", u.project}, u.reach()...)
		return with(path, append(append(args, flags...), agent, "--", "--version")...)
	}
	build := func() string {
		r := with(path, "sandbox", "build", "--sandbox="+engine, "--agent", agent, "--dir", u.project, "--trust-project",
			"--if-missing", "--yes")
		name := strings.TrimSpace(r.out)
		if r.code != 0 || !strings.HasPrefix(name, "localhost/aileron/devcontainer-"+agent+":") {
			t.Fatalf("the image is %q, exit %d\n%s", name, r.code, r.err)
		}
		t.Cleanup(func() { u.ask("image", "rm", name) })
		return name
	}
	install("one")
	refused := launch(path, "--trust-project")
	if refused.code != 1 {
		t.Errorf("without consent: exit %d\n%s", refused.code, refused.err)
	}
	contains(t, "the refusal", refused.err, "the image has none, and a person must agree to add it as one more layer")
	first := build()
	runs := func(want string) {
		t.Helper()
		r := launch(alone, "--sandbox-build=never", "--trust-project") // without the program of the features
		if r.code != 0 || !strings.ContainsAny(r.out, "0123456789") {
			t.Fatalf("exit %d, %q\n%s", r.code, r.out, r.err)
		}
		order := string(must.Get(os.ReadFile(filepath.Join(u.project, "order")))(t))
		if order != want+"\n/usr/local/bin/"+agent+"\n" {
			t.Errorf("the command of the feature wrote %q, want %q", order, want)
		}
		must.Do(t, os.Remove(filepath.Join(u.project, "order")))
	}
	runs("one root")
	install("two")
	if r := launch(alone, "--sandbox-build=never"); r.code != 1 {
		t.Errorf("with another feature: exit %d, %q\n%s", r.code, r.out, r.err)
	}
	if second := build(); second == first {
		t.Errorf("the layer on another feature is %s again", first)
	}
	runs("two root")
	if left := u.leftovers(); left != "" {
		t.Errorf("left: %s", left)
	}
}
