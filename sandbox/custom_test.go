package sandbox

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

func TestPackagesThatAreNoPackagesAreRefused(t *testing.T) {
	for _, name := range []string{"", "-y", "--reinstall", "a", "ripgrep-", "Ripgrep", "a b", "a;id", "$(id)", "a\nRUN id",
		"./x.deb", "/tmp/x.deb", "a=", "a=1 b", "a\\", strings.Repeat("a", 201)} {
		if _, err := CustomImage(BaseImage(), []string{"jq", name}, nil); err == nil || hint.Of(err) == "" ||
			!strings.Contains(err.Error(), "is not the name of a Debian package") {
			t.Errorf("CustomImage with the package %q: %v", name, err)
		}
	}
	for _, name := range []string{"ripgrep", "g++", "golang-1.19-go", "libc6-dev", "jq=1.6-2.1+deb12u1", "0ad"} {
		if _, err := CustomImage(BaseImage(), []string{name}, nil); err != nil {
			t.Errorf("CustomImage with the package %q: %v", name, err)
		}
	}
}

func TestAnImagesTagIsItsContents(t *testing.T) {
	ref := func(base Image, packages []string, dockerfile string) string {
		t.Helper()
		var data []byte
		if dockerfile != "" {
			data = []byte(dockerfile)
		}
		img := must.Get(CustomImage(base, packages, data))(t)
		return img.Ref
	}
	const file = "ARG BASE\nFROM ${BASE}\n"
	agent := AgentImage("a", []byte("ARG BASE\nFROM ${BASE}\n"))
	if a, b := ref(agent, []string{"jq", "tmux"}, file), ref(agent, []string{"tmux", "jq", "tmux"}, file); a != b {
		t.Errorf("%s and %s are of the same packages", a, b)
	}
	if got := ref(agent, nil, ""); got != agent.Ref {
		t.Errorf("nothing added to %s makes %s", agent.Ref, got)
	}
	seen := map[string]bool{}
	for _, r := range []string{
		agent.Ref, ref(agent, []string{"jq"}, ""), ref(agent, []string{"tmux"}, ""), ref(agent, nil, file),
		ref(agent, []string{"jq"}, file), ref(ToolboxImage(), []string{"jq"}, file),
		ref(agent, nil, file+"RUN true\n"),
	} {
		if seen[r] {
			t.Errorf("two images are %s", r)
		}
		seen[r] = true
	}
	// A person may choose these: a tag is all that they are found by.
	built := BuiltImage([]byte(file), Build{Digest: "b"}, nil)
	for _, r := range []string{ref(agent, nil, file), built.Ref} {
		if _, tag, _ := strings.Cut(r, ":"); len(tag) < 64 {
			t.Errorf("the tag of %s has fewer than 256 bits", r)
		}
	}
	if a, b := longDigest([]byte("ab"), []byte("c")), longDigest([]byte("a"), []byte("bc")); a == b {
		t.Error("a tag does not tell where one part ends")
	}
	if _, err := CustomImage(Image{Ref: "localhost/mine"}, []string{"jq"}, nil); err == nil {
		t.Error("packages are added to an image of the user's own")
	}
}

func TestADockerfileThatIsNotBuiltNamesItsLine(t *testing.T) {
	const top = "ARG BASE\nFROM ${BASE}\n"
	for text, want := range map[string]string{
		"":                                         "no FROM",
		"RUN id\n":                                 "no FROM",
		"FROM debian\n":                            "line 1: the last FROM is debian",
		top + "FROM debian\n":                      "line 3: the last FROM is debian",
		"# syntax=evil/frontend\n" + top:           "line 1: a directive",
		"#syntax = evil\n" + top:                   "line 1: a directive",
		"# plain\n# escape=`\n" + top:              "line 2: a directive",
		top + "ADD https://x.example/y /y\n":       "line 3: ADD has no files",
		top + "COPY . /src\n":                      "line 3: COPY has no files",
		top + "copy a b\n":                         "line 3: copy has no files",
		top + "RUN --mount=type=bind,from=x id\n":  "line 3: RUN with --mount=type=bind,from=x",
		top + "RUN \\\n  --security=insecure id\n": "line 3: RUN with --security=insecure",
		top + "RUN \\\n# x\n\n  --network=host id": "line 3: RUN with --network=host",
		"FROM --platform=x ${BASE}":                "line 1: FROM with --platform=x",
		top + "ONBUILD RUN id\n":                   "line 3: ONBUILD",
		top + "RUN <<EOF\nid\nEOF\n":               "line 3: RUN with <<",
		// What the engine's builder reads otherwise than a person, or than the check would.
		top + "RUN -\\\n-mount=type=bind,rw,from=x,source=/,target=/y id\n": "line 3: RUN with --mount=type=bind,rw,from=x",
		top + "RU\\\nN --mount=type=bind id\n":                              "line 3: RUN with --mount=type=bind",
		top + "RUN a \\\u00a0\nRUN --mount=type=bind id\n":                  "line 3: the character u+00a0 cannot be seen",
		top + "RUN a \\\v\nRUN --mount=type=bind id\n":                      "line 3: the character u+000b",
		top + "RUN a \\\r\r\nRUN --mount=type=bind id\n":                    "line 3: the character u+000d",
		top + "RUN echo \u202ea\n":                                          "line 3: the character u+202e",
		top + "RUN cat <<'ENV \\'\nENV \\\nRUN --mount=type=bind id\n":      "line 3: RUN with <<",
		"ARG BASE\nFROM tarball:/home/me/b.tar AS p\nFROM ${BASE}\n": "line 2: FROM tarball:/home/me/b.tar may " +
			"name a file",
		"ARG BASE\nFROM Dir:x\nFROM ${BASE}\n":                       "line 2: FROM Dir:x may name a file",
		"ARG BASE\nARG X=tarball:/x\nFROM ${X} AS p\nFROM ${BASE}\n": "line 3: FROM ${X} may name a file",
		"ARG BASE\nARG X=ball:/x\nFROM tar${X} AS p\nFROM ${BASE}\n": "line 3: FROM tar${X} may name a file",
		top + "COPY --from=oci-archive:b.tar / /p\n": "line 3: COPY with --from=oci-archive:b.tar " +
			"may name",
		top + "COPY --from=new:/x / /p\n":         "line 3: COPY with --from=new:/x may name",
		top + "COPY --from=a --from=dir:x / /p\n": "line 3: COPY with --from=dir:x may name",
		top + "COPY --from=\"dir\":x / /p\n":      `line 3: COPY with --from="dir":x may name`,
		top + "COPY --from=a:$B / /p\n":           "line 3: COPY with --from=a:$B may name",
		top + "RUN \x00":                          "not text",
		top + strings.Repeat("# x\n", 1<<15):      "more than 64 KiB",
	} {
		_, err := CustomImage(BaseImage(), nil, []byte(text))
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) || hint.Of(err) == "" {
			t.Errorf("CustomImage(%.60q) = %v, want %q and a hint", text, err, want)
		}
	}
	for _, text := range []string{
		top, top + "# syntax=later\nUSER root\nRUN apt-get update && \\\n    apt-get install -y jq\nENV A=b\n",
		"ARG BASE\nFROM docker.io/library/golang:1.26 AS go\nFROM $BASE\nCOPY --from=go /usr/local/go /usr/local/go\n",
		top + "RUN a \\\r\n\t# c\r\n  && b\r\nCOPY --from=localhost:5000/a/b:1 --chown=1 /x /y\nCOPY --from=0 a b\n",
		"ARG BASE\nARG GO=1.26\nFROM golang:${GO} AS go\nFROM docker:24\nFROM example.com:5000/x@sha256:0\nFROM $BASE\n",
		top + "ENTRYPOINT [\"x\"]\nCMD y\nVOLUME /x\nHEALTHCHECK NONE\nEXPOSE 80\nSTOPSIGNAL 9\n",
	} {
		if _, err := CustomImage(BaseImage(), nil, []byte(text)); err != nil {
			t.Errorf("CustomImage(%q): %v", text, err)
		}
	}
}
