package images

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/recipes"
)

// toolboxBound is the size of the toolbox with its base: Node.js has 190 MB of
// it, compilers 220 MB, git and gh 90 MB.
const toolboxBound = 1 << 30

// What an agent needs for a day's work is there, and works without a network.
func TestTheToolboxWorks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		r := p.box(recipes.Toolbox().Ref, nil, []string{"bash", "-euc", `
			for c in git gh ssh ssh-keygen python3 pip node npm npx make cc gcc g++ jq rg less nano ps unzip curl \
				patch file xz; do
				command -v $c >/dev/null || echo "no $c"
			done
			git init -q repo; cd repo
			printf '#include <stdio.h>\nint main() { puts("compiled"); }\n' >a.c
			printf 'a: a.c\n\tcc -o a a.c\n' >Makefile
			make -s; ./a
			git add a.c; git -c user.name=x -c user.email=x@example.org commit -qm first; git log --format=%s
			python3 -m venv /tmp/v; /tmp/v/bin/pip --version >/dev/null
			/tmp/v/bin/python -c 'import sys; print("venv", sys.prefix)'
			node -e 'console.log(JSON.stringify({node: Number(process.version.slice(1).split(".")[0]) >= 22}))' | jq -r .node
			mkdir native; cd native
			echo '{"name":"native","version":"1.0.0","gypfile":true}' >package.json
			echo '{"targets":[{"target_name":"a","sources":["a.c"]}]}' >binding.gyp
			printf '#include <node_api.h>\nNAPI_MODULE_INIT() { return exports; }\n' >a.c
			npm install --no-audit --no-update-notifier >log 2>&1 || cat log
			node -e 'require("./build/Release/a.node"); console.log("native")'
			id -un >/dev/null && gh --version >/dev/null && echo LANG=$LANG`})
		if r.code != 0 || r.out != "compiled\nfirst\nvenv /tmp/v\ntrue\nnative\nLANG=C.UTF-8\n" {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		var about []struct{ Size int64 }
		out, _ := tool(engine, "image", "inspect", recipes.Toolbox().Ref)
		if err := json.Unmarshal(out, &about); err != nil || len(about) != 1 {
			t.Fatalf("inspect: %v\n%s", err, out)
		}
		if about[0].Size > toolboxBound {
			t.Errorf("the toolbox has %d MB, want at most %d", about[0].Size>>20, int64(toolboxBound)>>20)
		}
	})
}

func TestASandboxHasTheHostsTimeZone(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		const ask = `echo "$TZ"; date -d @0 +%Z%H; unset TZ; date -d @0 +%Z%H; TZ=Etc/UTC date -d @0 +%Z%H; echo $LANG`
		for _, c := range []struct {
			image, want string
			flags       []string
		}{
			{"", "Asia/Tokyo JST09 JST09 UTC00 C.UTF-8", nil},
			{"", "Asia/Tokyo JST09 UTC00 UTC00 C.UTF-8", []string{"--read-only"}},
			// Its own programs may not know the zone by its name.
			{ref("debian"), "JST09 JST09 UTC00 C.UTF-8", nil},
		} {
			p := newPerson(t, engine)
			r := p.box(c.image, c.flags, []string{"sh", "-c", ask}, "TZ=Asia/Tokyo")
			if got := strings.Join(strings.Fields(r.out), " "); r.code != 0 || got != c.want {
				t.Errorf("%q %q: exit %d, %q, want %q\n%s", c.image, c.flags, r.code, got, c.want, r.err)
			}
		}
	})
}
