package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/trust"
)

func TestTheLinesOfAProjectThatLeadPastTheSession(t *testing.T) {
	t.Parallel()
	session := trust.Environment{Proxy: "http://127.0.0.1:3128", Bundle: "/bundle", JavaStore: "/p12"}
	for _, c := range []struct{ name, file, text, variable, said string }{
		{"Yarn's proxy", ".yarnrc.yml", "a: b\nhttpsProxy: http://p:1\n", "YARN_HTTPS_PROXY=http://127.0.0.1:3128", ""},
		{"Yarn's roots", ".yarnrc.yml", "'httpsCaFilePath': ./c.pem\n", "YARN_HTTPS_CA_FILE_PATH=/bundle", ""},
		{"Yarn's roots before 4", ".yarnrc.yml", "caFilePath: ./c.pem\n", "YARN_CA_FILE_PATH=/bundle", ""},
		{"Yarn, for one host", ".yarnrc.yml", "networkSettings:\n  x.test:\n    httpsProxy: http://p:1\n", "",
			".yarnrc.yml:3: Yarn takes httpsProxy"},
		{"npm", ".npmrc", "cafile=c.pem\n", "", ""},
		{"pip", ".venv/pip.conf", "[global]\nproxy = http://u:secret@p:1\n", "PIP_PROXY=http://127.0.0.1:3128", ""},
		{"Maven's JVM", ".mvn/jvm.config", "-Xmx1g -Djavax.net.ssl.trustStore=c.jks\n",
			"MAVEN_OPTS=" + session.JavaOptions(), ""},
		{"Maven's command line", ".mvn/maven.config", "-B\n-Dhttp.proxyHost=p\n", "",
			".mvn/maven.config:2: Maven takes http.proxyHost"},
		{"Gradle", "gradle.properties", "a=b\n\nsystemProp.https.proxyHost=p\n", "",
			"gradle.properties:3: Gradle takes systemProp.https.proxyHost"},
		{"Gradle's JVM", "gradle.properties", "org.gradle.jvmargs=-Xmx1g -Djavax.net.ssl.trustStore=c\n", "",
			"gradle.properties:1: Gradle takes javax.net.ssl.trustStore"},
		{"a remark", "gradle.properties", "# systemProp.https.proxyHost=p\n", "", ""},
		{"NuGet", "NuGet.Config", "<config>\n<add key=\"http_proxy\" value=\"http://u:secret@p:1\" />", "",
			"NuGet.Config:2: NuGet takes http_proxy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, c.file)), 0o700))
			write(t, filepath.Join(dir, c.file), c.text)
			found := findSettings(dir, session)
			env, said := found.env, strings.Join(found.notes, "\n")
			if c.variable == "" && len(env) > 0 || c.variable != "" && !slices.Equal(env, []string{c.variable}) {
				t.Errorf("the variables: %q, want %q", env, c.variable)
			}
			if !strings.Contains(said, c.said) || c.said == "" && said != "" || strings.Contains(said, "secret") {
				t.Errorf("said is %q, want %q", said, c.said)
			}
		})
	}
}

// pnpm 11 alone has a file's roots before those of its variables.
func TestTheRootsOfAnNpmrcAreNamedWherePnpmIsUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".npmrc"), "fund=false\ncafile=c.pem\n")
	write(t, filepath.Join(dir, "pnpm-lock.yaml"), "")
	said := strings.Join(findSettings(dir, trust.Environment{}).notes, "\n")
	if !strings.Contains(said, ".npmrc:2: pnpm 11 takes cafile") {
		t.Errorf("said is %q", said)
	}
}

// A project may be a stranger's: what its links lead to elsewhere is not read, whatever part of the path is one.
func TestSettingsThatAreLinksAreNotRead(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "other"), "systemProp.https.proxyHost=p\n")
	must.Do(t, os.Symlink(filepath.Join(outside, "other"), filepath.Join(dir, "gradle.properties")))
	write(t, filepath.Join(outside, "pip.conf"), "proxy = p\n")
	write(t, filepath.Join(outside, "maven.config"), "-Dhttp.proxyHost=p\n")
	must.Do(t, os.Symlink(outside, filepath.Join(dir, ".venv")))
	must.Do(t, os.Symlink(outside, filepath.Join(dir, ".mvn")))
	if found := findSettings(dir, trust.Environment{Proxy: "http://127.0.0.1:3128"}); len(found.notes)+len(found.env) > 0 {
		t.Errorf("of a link: %q, %q", found.notes, found.env)
	}
}

func TestTheSessionsOptionsOfMavenAreBehindTheUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, ".mvn"), 0o700))
	write(t, filepath.Join(dir, ".mvn/jvm.config"), "-Dhttps.proxyHost=p\n")
	session := trust.Environment{Proxy: "http://127.0.0.1:3128", JavaStore: "/p12"}
	ours := session.JavaOptions()
	found := findSettings(dir, session)
	for _, c := range []struct {
		settings          projectSettings
		users             []string
		options, appendTo string
	}{
		{found, nil, ours, mavenOptions},
		{found, []string{"MAVEN_OPTS=-Xmx1g", "A=b", "MAVEN_OPTS=-Xmx2g"}, "-Xmx2g " + ours, ""},
		{projectSettings{}, []string{"MAVEN_OPTS=-Xmx2g"}, "-Xmx2g", ""}, // not behind the image's
	} {
		env, appendTo := c.settings.with(c.users)
		if last := env[len(env)-1]; last != "MAVEN_OPTS="+c.options || strings.Join(appendTo, " ") != c.appendTo {
			t.Errorf("with %q, the last is %q, behind the image's %q", c.users, last, appendTo)
		}
	}
	// On the host, there is no trust store for Java.
	if found = findSettings(dir, trust.Environment{Proxy: session.Proxy}); len(found.env) > 0 || len(found.notes) != 2 ||
		!strings.Contains(found.notes[0], ".mvn/jvm.config:1: Maven takes https.proxyHost") ||
		!strings.Contains(found.notes[1], commentOut) {
		t.Errorf("on the host: %q and %q", found.env, found.notes)
	}
}
