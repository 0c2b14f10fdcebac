package images

import (
	"encoding/json"
	"os"
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

// A user that the image does not know has a name, a group and a home that it can
// write to.
func TestAnyUserHasANameAndAHome(t *testing.T) {
	t.Parallel()
	const ask = `id -un; id -gn; echo "$HOME"; touch "$HOME/made" made; git config --global user.name x;
		ssh-keygen -q -t ed25519 -N "" -f "$HOME/key" && echo key; awk -F: '{ print $3 }' /etc/passwd | sort | uniq -d`
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			owner int
			want  string
		}{{0, "root root /home/agent key"}, {1000, "agent agent /home/agent key"}, {4321, "user user /home/agent key"}} {
			for _, flags := range [][]string{nil, {"--read-only"}} {
				p := newPerson(t, engine)
				if err := os.Chown(p.project, c.owner, c.owner); err != nil {
					t.Skip("only root makes a project of another user: ", err)
				}
				r := p.box(recipes.Toolbox().Ref, flags, []string{"sh", "-c", ask})
				if got := strings.Join(strings.Fields(r.out), " "); r.code != 0 || got != c.want {
					t.Errorf("owner %d, %q: exit %d, %q, want %q\n%s", c.owner, flags, r.code, got, c.want, r.err)
				}
			}
		}
	})
}

// Root installs a package in an image that used apt before, with no capability.
func TestRootInstallsPackages(t *testing.T) {
	t.Parallel()
	const install = `set -eu
		cap=$(grep CapEff /proc/self/status); echo ${cap##*0}done
		mkdir -p /tmp/p/hello/DEBIAN /tmp/p/hello/usr/bin; cd /tmp/p
		printf 'Package: hello-aileron\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n' \
			>hello/DEBIAN/control
		printf '#!/bin/sh\necho hello\n' >hello/usr/bin/hello-aileron; chmod 755 hello/usr/bin/hello-aileron
		chmod 4755 hello/usr/bin/hello-aileron
		dpkg-deb --build hello >/dev/null
		{ dpkg-deb -f hello.deb; echo "Filename: ./hello.deb"; echo "Size: $(stat -c %s hello.deb)"
			echo "SHA256: $(sha256sum hello.deb | cut -d" " -f1)"; } >Packages
		rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
		echo "deb [trusted=yes] file:/tmp/p ./" >/etc/apt/sources.list
		apt-get update -q 2>&1 | grep -E '^(E|W):' || true
		apt-get install -y -q hello-aileron >log 2>&1 || cat log
		hello-aileron`
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		r := p.box(recipes.Toolbox().Ref, nil, []string{"bash", "-c", install})
		if r.code != 0 || r.out != "done\nhello\n" {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
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
