#!/bin/bash
# Works with pull requests as an agent does, in a sandbox.
set -euo pipefail
for c in "pr list" "pr view 8" "issue view 7" "pr create -t T -b B -H acme:of-gh"; do
	gh $c -R acme/tool
done
gh repo view acme/tool
gh pr merge 8 -R acme/tool --merge
echo "merged"
if gh repo delete acme/tool --confirm; then exit 3; fi
if gh api graphql -f query='mutation{deleteRepository(input:{}){clientMutationId}}'; then exit 4; fi
echo "not deleted"
