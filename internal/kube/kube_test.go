package kube_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/kube"
)

var update = flag.Bool("update", false, "write examples/kube anew")

// options are good ones of a shape and a form.
func options(shape kube.Shape, form kube.Form) kube.Options {
	o := kube.Options{Shape: shape, Form: form, Name: "fix-123", Namespace: "agents",
		Image: "registry.example/aileron:1", AgentImage: "registry.example/agent@sha256:" + strings.Repeat("a", 64),
		Command: []string{"/bin/sh", "-c", "echo 'a: b' # no comment\nexit 0"}}
	if form == kube.Plane {
		o.Relay = "box.agents.svc.cluster.local:8443"
	}
	return o
}

// sandboxTemplate is the SandboxTemplate of agent-sandbox, extensions.agents.x-k8s.io/v1beta1, as far as it is used.
type sandboxTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodTemplate struct {
			ObjectMeta struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec corev1.PodSpec `json:"spec"`
		} `json:"podTemplate"`
		Service                    *bool  `json:"service"`
		EnvVarsInjectionPolicy     string `json:"envVarsInjectionPolicy"`
		VolumeClaimTemplatesPolicy string `json:"volumeClaimTemplatesPolicy"`
		NetworkPolicyManagement    string `json:"networkPolicyManagement"`
		NetworkPolicy              *struct {
			Ingress []networkingv1.NetworkPolicyIngressRule `json:"ingress"`
			Egress  []networkingv1.NetworkPolicyEgressRule  `json:"egress"`
		} `json:"networkPolicy"`
	} `json:"spec"`
}

// rendered is what was printed, read with the API's own types; a field that these do not have is an error.
type rendered struct {
	pods     []corev1.Pod
	policies []networkingv1.NetworkPolicy
	services []corev1.Service
	template *sandboxTemplate
}

func render(t *testing.T, o kube.Options) (r rendered, text string) {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, kube.Render(&out, o))
	for _, doc := range strings.Split(out.String(), "\n---\n") {
		var kind metav1.TypeMeta
		must.Do(t, yaml.Unmarshal([]byte(doc), &kind))
		decode := func(into any) { t.Helper(); must.Do(t, yaml.UnmarshalStrict([]byte(doc), into)) }
		switch kind.APIVersion + " " + kind.Kind {
		case "v1 Pod":
			var pod corev1.Pod
			decode(&pod)
			r.pods = append(r.pods, pod)
		case "v1 Service":
			var s corev1.Service
			decode(&s)
			r.services = append(r.services, s)
		case "networking.k8s.io/v1 NetworkPolicy":
			var p networkingv1.NetworkPolicy
			decode(&p)
			r.policies = append(r.policies, p)
		case "extensions.agents.x-k8s.io/v1beta1 SandboxTemplate":
			r.template = &sandboxTemplate{}
			decode(r.template)
		default:
			t.Fatalf("an object of kind %q in\n%s", kind, doc)
		}
	}
	return r, out.String()
}

// level returns the strictest level of the Pod Security Standards that admits a Pod, and what the next one forbids, as
// the API server's own admission decides.
func level(t *testing.T, meta *metav1.ObjectMeta, spec *corev1.PodSpec) (admitted psa.Level, forbidden string) {
	t.Helper()
	e := must.Get(policy.NewEvaluator(policy.DefaultChecks(), nil))(t)
	admitted = psa.LevelPrivileged
	for _, l := range []psa.Level{psa.LevelBaseline, psa.LevelRestricted} {
		version := psa.LevelVersion{Level: l, Version: psa.LatestVersion()}
		result := policy.AggregateCheckResults(e.EvaluatePod(version, meta, spec))
		if !result.Allowed {
			return admitted, result.ForbiddenDetail()
		}
		admitted = l
	}
	return admitted, ""
}

func TestTwoPodsAreRestricted(t *testing.T) {
	r, text := render(t, options(kube.Pods, kube.Plain))
	if len(r.pods) != 2 || len(r.policies) != 2 || len(r.services) != 1 {
		t.Fatalf("%d Pods, %d policies, %d services", len(r.pods), len(r.policies), len(r.services))
	}
	for _, pod := range r.pods {
		if l, forbidden := level(t, &pod.ObjectMeta, &pod.Spec); l != psa.LevelRestricted {
			t.Errorf("%s is admitted at %s: %s", pod.Name, l, forbidden)
		}
	}
	if strings.Contains(text, "add:") {
		t.Error("a container has a capability")
	}
	agent := r.policies[0].Spec
	if len(agent.Egress) != 0 || !slices.Contains(agent.PolicyTypes, networkingv1.PolicyTypeEgress) ||
		!slices.Contains(agent.PolicyTypes, networkingv1.PolicyTypeIngress) || len(agent.Ingress) != 1 {
		t.Errorf("the agent's policy is %+v", agent)
	}
	for i, p := range r.policies {
		for name, value := range p.Spec.PodSelector.MatchLabels {
			if got := r.pods[i].Labels[name]; got != value {
				t.Errorf("%s selects %s=%s, and the Pod %s has %q", p.Name, name, value, r.pods[i].Name, got)
			}
		}
	}
	for name, value := range agent.Ingress[0].From[0].PodSelector.MatchLabels {
		if r.pods[1].Labels[name] != value {
			t.Errorf("the plane has no label %s=%s, by which it is let in", name, value)
		}
	}
}

func TestASidecarHasTheGatewaysCapabilitiesAndNoOther(t *testing.T) {
	r, _ := render(t, options(kube.Sidecar, kube.Plain))
	if len(r.pods) != 1 || len(r.policies) != 0 {
		t.Fatalf("%d Pods, %d policies", len(r.pods), len(r.policies))
	}
	spec := r.pods[0].Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		want := []corev1.Capability(nil)
		if c.Name == "gateway" {
			want = []corev1.Capability{"NET_ADMIN", "SETUID", "SETGID", "SETPCAP"}
		}
		if !slices.Equal(c.SecurityContext.Capabilities.Add, want) ||
			!slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s has the capabilities %+v, want %v", c.Name, c.SecurityContext.Capabilities, want)
		}
	}
	// But for the gateway the Pod would be restricted.
	isGateway := func(c corev1.Container) bool { return c.Name == "gateway" }
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, isGateway)
	if l, forbidden := level(t, &r.pods[0].ObjectMeta, &spec); l != psa.LevelRestricted {
		t.Errorf("without the gateway it is admitted at %s: %s", l, forbidden)
	}
}

// What only some containers may have: in both shapes the agent has neither sockets, grants, state nor the key.
func TestTheAgentHasNothingOfThePlane(t *testing.T) {
	for _, shape := range []kube.Shape{kube.Sidecar, kube.Pods} {
		r, _ := render(t, options(shape, kube.Plain))
		spec := r.pods[0].Spec
		if len(spec.Containers) != 1 || spec.HostNetwork || spec.HostPID || spec.HostIPC || *spec.ShareProcessNamespace ||
			*spec.AutomountServiceAccountToken {
			t.Errorf("%s: the Pod is %+v", shape, spec)
		}
		agent := spec.Containers[0]
		for _, m := range agent.VolumeMounts {
			if m.Name != "workspace" && (m.Name != "public" || !m.ReadOnly) {
				t.Errorf("%s: the agent has %+v", shape, m)
			}
		}
		for _, c := range spec.InitContainers {
			if *c.SecurityContext.RunAsUser == *agent.SecurityContext.RunAsUser {
				t.Errorf("%s: %s has the agent's user", shape, c.Name)
			}
			if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways || c.StartupProbe == nil {
				t.Errorf("%s: %s is no sidecar that the agent waits for", shape, c.Name)
			}
		}
		volumes := map[string]bool{}
		for _, v := range spec.Volumes {
			volumes[v.Name] = true
		}
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s: %s mounts %s, which is no volume", shape, c.Name, m.Name)
				}
			}
		}
	}
}

func TestTemplates(t *testing.T) {
	r, _ := render(t, options(kube.Pods, kube.Template))
	spec := r.template.Spec
	if spec.NetworkPolicy == nil || len(spec.NetworkPolicy.Egress) != 0 || len(spec.NetworkPolicy.Ingress) != 1 ||
		spec.NetworkPolicyManagement != "Managed" || spec.Service == nil || !*spec.Service {
		t.Errorf("the template is %+v", spec)
	}
	if l, forbidden := level(t, &metav1.ObjectMeta{}, &spec.PodTemplate.Spec); l != psa.LevelRestricted {
		t.Errorf("its Pods are admitted at %s: %s", l, forbidden)
	}
	plane, _ := render(t, options(kube.Pods, kube.Plane))
	for name, value := range spec.NetworkPolicy.Ingress[0].From[0].PodSelector.MatchLabels {
		if plane.pods[0].Labels[name] != value {
			t.Errorf("a plane has no label %s=%s, by which it is let in", name, value)
		}
	}
	if !slices.Contains(plane.pods[0].Spec.Containers[0].Args, "box.agents.svc.cluster.local:8443") {
		t.Errorf("the plane's arguments are %q", plane.pods[0].Spec.Containers[0].Args)
	}
	sidecar, _ := render(t, options(kube.Sidecar, kube.Template))
	if n := len(sidecar.template.Spec.PodTemplate.Spec.InitContainers); n != 2 {
		t.Errorf("a sidecar's template has %d sidecars", n)
	}
}

// The command is one argument for one, whatever is in it.
func TestACommandIsWhatWasGiven(t *testing.T) {
	want := []string{"sh", "-c", "a: b # c\n- d: {e: f}\n\"'\\ ---\t\n...", "!!binary x", "*alias", "&anchor", "%d",
		"null", "true", "0x1f", "", " ", "<&>", "<<image>>", "[[env]]", "ü🚀",
		"echo $$ $(HTTP_PROXY) $(date) $HOME $"}
	for _, shape := range []kube.Shape{kube.Sidecar, kube.Pods} {
		o := options(shape, kube.Plain)
		o.Command = want
		r, _ := render(t, o)
		got := slices.Clone(r.pods[0].Spec.Containers[0].Command)
		for i, arg := range got { // as kubelet does, which would replace a $( without another $
			if strings.Contains(strings.ReplaceAll(arg, "$$", ""), "$") {
				t.Errorf("%s: kubelet expands %q", shape, arg)
			}
			got[i] = strings.ReplaceAll(arg, "$$", "$")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the command is %q, want %q", shape, got, want)
		}
	}
}

func TestValuesThatAreNoneAreRefused(t *testing.T) {
	const inject = "x\n  hostNetwork: true"
	for _, c := range []struct {
		name  string
		spoil func(*kube.Options)
	}{
		{"name", func(o *kube.Options) { o.Name = inject }},
		{"name", func(o *kube.Options) { o.Name = "a: b" }},
		{"name", func(o *kube.Options) { o.Name = "" }},
		{"name", func(o *kube.Options) { o.Name = "Fix" }},
		{"name", func(o *kube.Options) { o.Name = "fix-" }},
		{"name", func(o *kube.Options) { o.Name = strings.Repeat("a", 51) }},
		{"namespace", func(o *kube.Options) { o.Namespace = "a\"}" }},
		{"image", func(o *kube.Options) { o.Image = inject }},
		{"image", func(o *kube.Options) { o.Image = "" }},
		{"image", func(o *kube.Options) { o.Image = "aileron:1 # latest" }},
		{"image", func(o *kube.Options) { o.Image = "aileron:1\", privileged: \"true" }},
		{"agent image", func(o *kube.Options) { o.AgentImage = "{{ .Name }}" }},
		{"agent image", func(o *kube.Options) { o.AgentImage = "agent\u2028:1" }},
		{"agent image", func(o *kube.Options) { o.AgentImage = strings.Repeat("a", 300) }},
		{"command", func(o *kube.Options) { o.Command = []string{"a\x00b"} }},
		{"command", func(o *kube.Options) { o.Command = []string{"a\u202eb"} }},
		{"command", func(o *kube.Options) { o.Command = []string{"a\xffb"} }},
		{"command", func(o *kube.Options) { o.Command = []string{strings.Repeat("a", 40<<10)} }},
		{"user", func(o *kube.Options) { o.AgentUser = 65533 }},
		{"user", func(o *kube.Options) { o.AgentUser = 65532 }},
		{"user", func(o *kube.Options) { o.AgentUser = -1 }},
		{"ports", func(o *kube.Options) { o.NamePorts = []uint16{53} }},
		{"shape", func(o *kube.Options) { o.Shape = "vm" }},
		{"relay", func(o *kube.Options) { o.Form, o.Relay = kube.Plane, "a:1\n- --grants=/" }},
	} {
		o := options(kube.Pods, kube.Plain)
		c.spoil(&o)
		var out bytes.Buffer
		err := kube.Render(&out, o)
		if err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%+v: %v, want that the %s is refused", o, err, c.name)
		}
		if out.Len() > 0 {
			t.Errorf("%+v: something was printed", o)
		}
	}
}

// Names of objects have parts of ours behind that of the session.
func TestTheLongestNameFits(t *testing.T) {
	o := options(kube.Pods, kube.Plain)
	o.Name = strings.Repeat("a", 50)
	r, _ := render(t, o)
	for _, pod := range r.pods {
		if why := validation.IsDNS1123Label(pod.Name); why != nil {
			t.Errorf("%s: %s", pod.Name, why)
		}
		for name, value := range pod.Labels {
			if why := append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...); why != nil {
				t.Errorf("%s=%s: %s", name, value, why)
			}
		}
	}
}

// The base of examples/kube is what is printed, so that neither is forgotten.
func TestTheExamplesAreWhatIsPrinted(t *testing.T) {
	for file, o := range map[string]kube.Options{
		"base/agent.yaml":             {Shape: kube.Pods, Name: "agent"},
		"sidecar/agent.yaml":          {Shape: kube.Sidecar, Name: "agent"},
		"agent-sandbox/template.yaml": {Shape: kube.Pods, Form: kube.Template, Name: "agent"},
	} {
		o.Image, o.AgentImage = "aileron", "agent"
		var out bytes.Buffer
		must.Do(t, kube.Render(&out, o))
		path := filepath.Join("..", "..", "examples", "kube", file)
		if *update {
			must.Do(t, os.WriteFile(path, out.Bytes(), 0o644))
		}
		if got := string(must.Get(os.ReadFile(path))(t)); got != out.String() {
			t.Errorf("%s is not what is printed; write it with: go test ./internal/kube -update", file)
		}
	}
}
