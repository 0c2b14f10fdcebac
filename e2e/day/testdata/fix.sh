set -eu
npm ci --silent --no-fund --no-audit --no-update-notifier
sed -i 's/a sum/the sum of two numbers/' main.go
npm test --silent
git checkout -q -b better-comment
git commit -qam 'Say what is summed'
git push -q origin better-comment
