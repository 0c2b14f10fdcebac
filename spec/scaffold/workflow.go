package scaffold

import (
	"path"
	"strings"
)

// Workflow returns the workflow of GitHub that checks the connector in a directory of the repository, "" for its top,
// at each push, and releases it at each tag of a version. The commands are those that a publisher runs by hand.
func Workflow(dir string) []byte {
	here, tags := ".", "v*"
	if dir != "" {
		here, tags = dir, path.Join(dir, "v*")
	}
	return []byte(strings.NewReplacer("DIR", here, "TAGS", tags).Replace(workflow))
}

const workflow = `# Checks the connector at each push, and releases it at each tag of a version: aileron connector new.
#
# The secrets of the repository's environment "release", in the settings of the repository:
#   AILERON_PUBLISHER_KEY          the content of the secret key file that aileron connector keygen has written
#   AILERON_PUBLISHER_PASSPHRASE   its passphrase
# Without them, the release is not signed.
name: connector

on:
  push:
    branches: ["**"]
    tags: ["TAGS"]
  pull_request:

permissions:
  contents: read

jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 15
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0 # the last release is a tag
          persist-credentials: false
      - uses: actions/setup-go@v5
        with:
          go-version: stable
          cache: false
      - run: go install github.com/ALRubinger/aileron/cmd/aileron@latest
      - run: aileron connector check "DIR"
      - run: aileron connector test "DIR"
      - run: aileron connector bump --dir "DIR"

  release:
    if: github.ref_type == 'tag'
    needs: check
    runs-on: ubuntu-latest
    timeout-minutes: 15
    environment: release
    permissions:
      contents: write # the release
    env:
      TAG: ${{ github.ref_name }}
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: actions/setup-go@v5
        with:
          go-version: stable
          cache: false # nothing that another run wrote is part of a release
      - run: go install github.com/ALRubinger/aileron/cmd/aileron@latest
      - name: the tag is that of the version
        run: test "$(aileron connector release "DIR" --dry-run --json | jq -r .tag)" = "$TAG"
      - name: pack and sign
        env:
          KEY: ${{ secrets.AILERON_PUBLISHER_KEY }}
          PASSPHRASE: ${{ secrets.AILERON_PUBLISHER_PASSPHRASE }}
        run: |
          umask 077
          printf '%s\n' "$PASSPHRASE" >"$RUNNER_TEMP/passphrase"
          printf '%s\n' "$KEY" >"$RUNNER_TEMP/publisher.key"
          if [ -n "$KEY" ]; then
            set -- --sign "$RUNNER_TEMP/publisher.key" --passphrase-file "$RUNNER_TEMP/passphrase"
          fi
          aileron connector release "DIR" --output "$RUNNER_TEMP/aileron.tar.gz" "$@"
      - run: gh release create "$TAG" "$RUNNER_TEMP/aileron.tar.gz" --verify-tag --title "$TAG" --generate-notes
        env:
          GH_TOKEN: ${{ github.token }}
          GH_REPO: ${{ github.repository }}
`
