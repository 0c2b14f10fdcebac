# `just` lists what there is to do. The two that matter: `just demo` shows it
# working on a fresh machine, `just test` is what CI runs.

export GOTOOLCHAIN := "go1.26.9"

version := "0.1.0"
lint_version := "v2.15.0"
actionlint_version := "v1.7.12"
tools := env("XDG_CACHE_HOME", env("HOME") / ".cache") / "aileron/bin"

[private]
default:
    @{{ quote(just_executable()) }} --justfile {{ quote(justfile()) }} --list --unsorted

# a real sandbox, a stub of the API that it calls, a credential that it never sees
demo: prepare build
    bin/aileron demo

# everything: lint, unit tests, end-to-end tests, some mutants, and nothing left behind; or `just test attacks`
test *names: prepare-tests
    @JUST={{ quote(just_executable()) }} scripts/test {{ names }}

# the same with -race everywhere, and on Docker too what Podman shows: once a night
whole: (test "--whole")

# bin/aileron, static, for this machine and for sandboxes alike
build:
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version={{ version }}" -o bin/aileron ./cmd/aileron

# aileron beside its peers, as ratios to a proxy without policy: eight minutes, or `just bench --quick --scenario A1,D`
bench *flags: build
    scripts/with-docker go run ./e2e/bench {{ flags }}

# allocations and instructions beside those of the baseline, which `just costs --baseline` writes anew
costs *flags:
    go run ./e2e/costs {{ flags }}

# real clients in a sealed sandbox, with the proxy variables and without: a table in Markdown
matrix: prepare-tests
    #!/usr/bin/env bash
    set -euo pipefail
    table=$(mktemp)
    trap 'rm -f "$table"' EXIT
    scripts/with-docker go run ./e2e/prepare images e2e/matrix
    result=0
    AILERON_MATRIX_TABLE=$table scripts/with-docker go test -count=1 -timeout 20m -v ./e2e/matrix >&2 || result=$?
    cat "$table"
    exit $result

# runs e2e/day and draws what a person sees of it into docs/day.svg
recording: prepare-tests
    AILERON_RECORDING={{ quote(justfile_directory() / "docs/day.svg") }} \
        go test -count=1 -run 'TestADay.*/^claude$' ./e2e/day

# takes each defence away and expects its test to fail: half an hour, or `just mutants --shard 2/20`
mutants *flags: prepare-tests
    scripts/mutants {{ flags }}

# what runs once a night and not in CI: also mutants that the last runs here have not tried, and twenty generated ones
nightly: whole clock placements kills renewals starts base-image prepare-tests
    scripts/mutants rest
    scripts/mutants generate

# builds the base image of sandboxes for an architecture and starts it, emulated where it is not the machine's
base-image arch="arm64":
    scripts/base-image {{ quote(arch) }}

# sets the clock of a running session by a day, ahead and back, and puts it to sleep
clock:
    AILERON_CLOCK=1 scripts/gotest -count=1 -timeout 20m ./e2e/clock

# holds the search for secrets to docs/scrubbing.md, with a million of them in random forms and places
placements:
    AILERON_SCRUB_PLACEMENTS=1000000 scripts/gotest -count=1 -timeout 2h -run TestTheSearchKeepsThePromise ./proxy/scrub

# starts and ends a hundred sandboxes at random, and stops sessions at 13 moments of their start
starts:
    AILERON_FAULTS_STARTS=100 scripts/with-docker scripts/gotest -count=1 -timeout 1h -run 'Many|Phase' ./e2e/faults

# kills a thousand sessions under load, and compares what an origin got with the intents in the log
kills:
    AILERON_AUDIT_KILLS=1000 scripts/gotest -count=1 -timeout 1h -run TestNoRequestIsSentWithoutAnIntent ./e2e/homes

# kills four sessions over and over while they renew the tokens of eight logins a thousand times
renewals:
    AILERON_OAUTH_RENEWALS=1000 scripts/gotest -count=1 -timeout 1h -run TestRenewalsSurviveKills ./e2e/oauth

# what every commit passes, in less than a minute: gofmt, vet, lint, import rules, unit tests
check: linter
    @scripts/check {{ quote(tools) }}

# golangci-lint with .golangci.yml, go vet for macOS, and actionlint over the workflows
lint: linter
    {{ quote(tools / "golangci-lint") }} run --allow-serial-runners ./...
    scripts/darwin
    {{ quote(tools / "actionlint") }}

# gofmt over the tree
fmt:
    gofmt -w .

# programs and base image that sandboxes need; installs them where it may
prepare:
    @scripts/prepare >/dev/null

[private]
prepare-tests:
    @scripts/prepare --tests >/dev/null

# archives of the commit that is checked out, for Linux and macOS, with SBOMs and checksums: `just release 0.1.0 dist`
release number dir:
    scripts/release {{ quote(number) }} {{ quote(dir) }}

# makes the archives twice, in other directories and with an empty build cache, and compares them
release-verify number=version:
    scripts/release --verify {{ quote(number) }}

[private]
linter:
    #!/usr/bin/env bash
    set -euo pipefail
    tools={{ quote(tools) }}
    build() { echo "lint: building $1 (once)" >&2; GOBIN=$tools go install "$1"; }
    is() { [[ $("$tools/$1" "$2" 2>/dev/null) == *"$3"* ]]; }
    is golangci-lint version ' {{ trim_start_match(lint_version, "v") }} ' ||
        build github.com/golangci/golangci-lint/v2/cmd/golangci-lint@{{ lint_version }}
    is actionlint -version '{{ trim_start_match(actionlint_version, "v") }}' ||
        build github.com/rhysd/actionlint/cmd/actionlint@{{ actionlint_version }}
