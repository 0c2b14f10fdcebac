package launch

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/internal/trust"
)

// clientSetting is a line of a project's file that names another proxy or other roots to a client, which has that
// before the variables of every session (trust.Environment).
type clientSetting struct {
	client string
	files  []string
	beside string // another file, without which the client is not used; "" is none
	line   string // a regular expression, whose first group is the setting's name; compiled for projects with the file
	// variable returns one that has precedence over the line: its name and value. Nil: the client has none; "": the
	// session has no such value.
	variable func(e trust.Environment) (name, value string)
	instead  string // what to do where there is no variable
}

const (
	jvmSettings = `-D((?:https?\.proxyHost|javax\.net\.ssl\.trustStore)\b)`
	commentOut  = "comment the line out for the session"
)

// clientSettings are those of a project's root. Each was tried with the client, or is in its documentation.
var clientSettings = []clientSetting{
	{client: "Yarn", files: []string{".yarnrc.yml"}, line: `^["']?(https?Proxy)\b`,
		variable: func(e trust.Environment) (string, string) { return "YARN_HTTPS_PROXY", e.Proxy }},
	// Yarn ends with an error on a variable of a setting that its version does not have, as it does on such a line.
	{client: "Yarn", files: []string{".yarnrc.yml"}, line: `^["']?(httpsCaFilePath)\b`,
		variable: func(e trust.Environment) (string, string) { return "YARN_HTTPS_CA_FILE_PATH", e.Bundle }},
	{client: "Yarn", files: []string{".yarnrc.yml"}, line: `^["']?(caFilePath)\b`,
		variable: func(e trust.Environment) (string, string) { return "YARN_CA_FILE_PATH", e.Bundle }},
	{client: "Yarn", files: []string{".yarnrc.yml"}, instead: commentOut,
		line: `^\s+["']?(https?Proxy|httpsCaFilePath|caFilePath)\b`}, // in networkSettings
	{client: "pnpm 11", files: []string{".npmrc"}, beside: "pnpm-lock.yaml",
		line: `^\s*(cafile|ca(?:\[\])?)\s*=`, instead: commentOut},
	{client: "pip", files: []string{".venv/pip.conf", "venv/pip.conf"}, line: `^\s*(proxy)\s*[=:]`,
		// Not in every session: pip would ask the proxy for hosts of NO_PROXY too.
		variable: func(e trust.Environment) (string, string) { return "PIP_PROXY", e.Proxy }},
	{client: "Maven", files: []string{".mvn/jvm.config"}, line: jvmSettings, instead: commentOut,
		variable: func(e trust.Environment) (string, string) { return mavenOptions, e.JavaOptions() }},
	{client: "Maven", files: []string{".mvn/maven.config"}, line: jvmSettings, instead: commentOut},
	{client: "Maven", files: []string{".mvn/settings.xml", "settings.xml"}, line: `<(proxy)>`,
		instead: "give the proxy <active>false</active> for the session"},
	{client: "Gradle", files: []string{"gradle.properties"}, instead: commentOut,
		line: `^\s*(systemProp\.(?:https?\.proxyHost|javax\.net\.ssl\.trustStore))\s*[=: ]`},
	{client: "Gradle", files: []string{"gradle.properties"}, instead: commentOut,
		line: `^\s*org\.gradle\.jvmargs\s*[=: ].*` + jvmSettings},
	{client: "Bun", files: []string{"bunfig.toml"}, line: `^\s*(cafile|ca)\s*=`, instead: commentOut},
	{client: "Bundler", files: []string{".bundle/config"}, line: `^(BUNDLE_SSL_CA_CERT)\b`,
		instead: commentOut},
	{client: "NuGet", files: []string{"NuGet.Config", "NuGet.config", "nuget.config"},
		line: `key="(https?_proxy)"`, instead: commentOut},
}

// mavenOptions are the options of Maven's JVM, which come after those of its project.
const mavenOptions = "MAVEN_OPTS"

// maxClientFile bounds a file of settings: a project may be a stranger's.
const maxClientFile = 256 << 10

// projectSettings are the lines of a project that name another proxy or other roots than the session's.
type projectSettings struct {
	env   []string // what has precedence over such lines
	notes []string // for people, of the others
}

// findSettings reads the files of a project by which clients would miss the session. A file that cannot be read has no
// such lines: a client in the sandbox may follow a link out of the project, but the host does not.
func findSettings(dir string, session trust.Environment) projectSettings {
	var found projectSettings
	root, err := os.OpenRoot(dir)
	if err != nil {
		return found
	}
	defer root.Close()
	for _, s := range clientSettings {
		if _, err := root.Lstat(cmp.Or(s.beside, ".")); err != nil {
			continue
		}
		for _, file := range s.files {
			text, err := regular.ReadIn(root, file, maxClientFile)
			if err != nil {
				continue
			}
			number, name := s.find(string(text))
			var variable, value string
			if s.variable != nil {
				variable, value = s.variable(session)
			}
			switch pair := variable + "=" + value; {
			case number == 0 || slices.Contains(found.env, pair):
			case value != "":
				found.env = append(found.env, pair)
			default:
				found.notes = append(found.notes, fmt.Sprintf("aileron: %s:%d: %s takes %s of this line, and not the session's",
					file, number, s.client, name), "  hint: "+s.instead)
			}
		}
	}
	return found
}

// find returns the number of the first line with the setting, from 1, and the name that it has there; 0 is none.
func (s clientSetting) find(text string) (number int, name string) {
	setting := regexp.MustCompile(s.line)
	for line := range strings.Lines(text) {
		number++
		if match := setting.FindStringSubmatch(line); match != nil {
			return number, match[1]
		}
	}
	return 0, ""
}

// with returns the variables for a command whose user sets some, which win. Options of Maven's JVM are joined, the
// session's last; without the user's, they belong behind the image's own value, as appendTo says.
func (p projectSettings) with(users []string) (env, appendTo []string) {
	env = slices.Concat(p.env, users)
	for _, pair := range p.env {
		options, is := strings.CutPrefix(pair, mavenOptions+"=")
		if !is {
			continue
		}
		appendTo = []string{mavenOptions}
		for _, theirs := range users {
			if strings.HasPrefix(theirs, mavenOptions+"=") {
				env, appendTo = append(env, theirs+" "+options), nil
			}
		}
	}
	return env, appendTo
}

// reportSettings prints the lines of the project by which clients miss the session.
func (b *sandboxed) reportSettings(m mediation) {
	if m.kind != unmediated {
		b.settings = findSettings(b.dir, m.clients())
		for _, note := range b.settings.notes {
			b.Infof("%s", note)
		}
	}
}
