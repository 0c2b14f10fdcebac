package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// The files of a company's projects name its own proxy and roots: clients use the session's all the same, and where
// none can be made to, the start names the line.
func TestTheSettingsOfAProjectDoNotLeadPastTheSession(t *testing.T) {
	t.Parallel()
	needPodman(t)
	image := recipes.Services()
	recipes.Need(t, "podman", image)
	p := newPerson(t)
	o := services.Start(t, "", image.Ref, stub.Script{})
	p.installCatalogue()
	const proxy = "http://proxy.corp.example:8080"
	for name, text := range map[string]string{
		"corp.pem":           "none",
		".npmrc":             "cafile=./corp.pem\nca[]=none\nproxy=" + proxy + "\nhttps-proxy=" + proxy + "\n",
		".cargo/config.toml": "[http]\nproxy = \"" + proxy + "\"\ncainfo = \"corp.pem\"\n",
		".venv/pip.conf":     "[global]\nproxy = " + proxy + "\ncert = corp.pem\n",
		".mvn/jvm.config": "-Djavax.net.ssl.trustStore=corp.jks -Dhttps.proxyHost=proxy.corp.example\n" +
			"-Dhttps.proxyPort=8080\n",
		"gradle.properties": "org.gradle.daemon=false\nsystemProp.https.proxyHost=proxy.corp.example\n",
	} {
		file := filepath.Join(p.project, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	_, errs := p.runClients(image, o, "npm_ci", "cargo_fetch", "pip_download", "mvn_validate")
	if said := "gradle.properties:2: Gradle takes systemProp.https.proxyHost of this line"; !strings.Contains(errs, said) {
		t.Errorf("the start does not say %q:\n%s", said, errs)
	}
}
