// octokit makes the requests that GitHub's document describes. Every response of the stub is {}.
import { Octokit } from '@octokit/core';

const octokit = new Octokit({ auth: 'placeholder' });
const of = { owner: 'acme', repo: 'web' };
const calls = {
  'GET /user': {},
  'GET /repos/{owner}/{repo}': of,
  'GET /repos/{owner}/{repo}/issues': { ...of, state: 'open', labels: 'bug,ui', per_page: 5 },
  'POST /repos/{owner}/{repo}/issues': { ...of, title: 'T', body: 'B', labels: ['bug', { name: 'ui' }] },
  'PATCH /repos/{owner}/{repo}/issues/{issue_number}': { ...of, issue_number: 7, state: 'closed' },
  'PUT /repos/{owner}/{repo}/contents/{path}': { ...of, path: 'README.md', message: 'm', content: 'aGk=' },
  'POST /repos/{owner}/{repo}/pulls': { ...of, title: 'T', head: 'a', base: 'main', draft: true },
  'GET /search/issues': { q: 'is:open label:"a b"', sort: 'created' },
  'POST /repos/{owner}/{repo}/git/trees': { ...of, tree: [{ path: 'a', mode: '100644', type: 'blob', content: 'x' }] },
  'DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}': { ...of, issue_number: 7, name: 'bug' },
  'DELETE /repos/{owner}/{repo}/contents/{path}': { ...of, path: 'README.md', message: 'm', sha: '95b966ae' },
};
for (const [route, args] of Object.entries(calls)) {
  try {
    await octokit.request(route, args);
    console.log(`ok client ${route}`);
  } catch (error) {
    console.log(`failed client ${route}\n${error.stack}`);
  }
}
