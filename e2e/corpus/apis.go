package corpus

// The answers of three APIs as they are, with all their fields: most of them are URLs, identifiers and hashes.
var apis = map[string][]string{
	// A page of a code host's pull requests: two users and two repositories in each.
	"pulls": {`{"url":"` + api + `/pulls/~<9999~","id":~<2147483648~,"node_id":"PR_~base64 12~","html_url":"` + site +
		`/pull/~<9999~","diff_url":"` + site + `/pull/1.diff","patch_url":"` + site + `/pull/1.patch","issue_url":"` + api +
		`/issues/1","number":~<9999~,"state":"open","locked":false,"title":"~words 4-12~","user":~user~,"body":"` +
		"~text\r\n 1-6~" + `","created_at":"~time~","updated_at":"~time~","closed_at":null,"merged_at":null,` +
		`"merge_commit_sha":"~hex 20~","assignee":null,"assignees":[],"requested_reviewers":[~user~],` +
		`"requested_teams":[],"labels":[{"id":~<2147483648~,"node_id":"~node Label~","url":"` + api +
		`/labels/~w~%20~w~","name":"~w~ ~w~","color":"~hex 3~","default":false,"description":"~words 2-8~"}],` +
		`"milestone":null,"draft":false,"commits_url":"` + api + `/pulls/1/commits","review_comments_url":"` + api +
		`/pulls/1/comments","review_comment_url":"` + api + `/pulls/comments{/number}","comments_url":"` + api +
		`/issues/1/comments","statuses_url":"` + api + `/statuses/~hex 20~","head":{"label":"~w~:~w~-~w~","ref":"` +
		`~w~-~w~","sha":"~hex 20~","user":~user~,"repo":~repository~},"base":{"label":"~w~:main","ref":"main","sha":"` +
		`~hex 20~","user":~user~,"repo":~repository~},"_links":{"self":{"href":"` + api + `/pulls/1"},"html":{"href":"` +
		site + `/pull/1"},"review_comment":{"href":"` + api + `/pulls/comments{/number}"}},"author_association":` +
		`"CONTRIBUTOR","auto_merge":null,"active_lock_reason":null}`},
	"repository": {`{"id":~<1073741824~,"node_id":"~node Repository~","name":"~w~","full_name":"~repo~","private":false,` +
		`"owner":~user~,"html_url":"` + site + `","description":"~words 4-14~","fork":false,"url":"` + api +
		`","forks_url":"` + api + `/forks","keys_url":"` + api + `/keys{/key_id}","collaborators_url":"` + api +
		`/collaborators{/collaborator}","hooks_url":"` + api + `/hooks","issue_events_url":"` + api +
		`/issues/events{/number}","assignees_url":"` + api + `/assignees{/user}","branches_url":"` + api +
		`/branches{/branch}","blobs_url":"` + api + `/git/blobs{/sha}","git_refs_url":"` + api +
		`/git/refs{/sha}","statuses_url":"` + api + `/statuses/{sha}","contents_url":"` + api +
		`/contents/{+path}","compare_url":"` + api + `/compare/{base}...{head}","archive_url":"` + api +
		`/{archive_format}{/ref}","notifications_url":"` + api + `/notifications{?since,all,participating}","created_at":` +
		`"~time~","pushed_at":"~time~","git_url":"git://code.example/~repo~.git","ssh_url":"git@code.example:~repo~.git",` +
		`"clone_url":"` + site + `.git","homepage":"https://~w~.example","size":~<65536~,"stargazers_count":~<9999~,` +
		`"language":"Go","has_issues":true,"has_wiki":false,"license":{"key":"mit","name":"MIT License","spdx_id":"MIT",` +
		`"url":"https://api.code.example/licenses/mit","node_id":"~node License~"},"topics":["~w~","~w~-~w~"],` +
		`"visibility":"public","default_branch":"main"}`},

	// A registry's whole document of a package, as clients that publish ask for it.
	"packument": {`"~version~":{"name":"some-package","version":"~version~","keywords":["~w~","~w~","~w~ ~w` +
		`~"],"license":` +
		`"MIT","_id":"some-package@~version~","maintainers":[{"name":"~w~","email":"~w~@mail.example"},{"name":"~w~",` +
		`"email":"~w~@mail.example"}],"homepage":"https://code.example/~repo~#readme","bugs":{"url":"https://code.example/` +
		`~repo~/issues"},"bin":{"~w~":"bin/~w~.js"},"dist":{"shasum":"~hex 20~","tarball":"https://packages.example/` +
		`some-package/-/some-package-~version~.tgz","fileCount":~<200~,"integrity":"sha512-~base64 64~","signatures":[` +
		`{"sig":"~base64 71~","keyid":"SHA256:~base64 32~"}],"unpackedSize":~<1048576~,"npm-signature":"-----BEGIN PGP ` +
		`SIGNATURE-----\r\nVersion: OpenPGP.js v3.0.13\r\n\r\n~base64 48~\r\n~base64 48~\r\n~base64 48~\r\n~base64 48~` +
		`\r\n=~hex 2~\r\n-----END PGP SIGNATURE-----\r\n"},"main":"./dist/index.cjs","types":"./dist/index.d.ts","exports":` +
		`{".":{"import":"./dist/index.mjs","require":"./dist/index.cjs"},"./~w~/*":"./dist/~w~/*"},"gitHead":"~hex 20~",` +
		`"scripts":{"lint":"eslint \"src/**/*.ts\" \u0026\u0026 ~w~","test":"~w~ --~w~ \"./~w~/*.js\""},"_npmUser":{"name":` +
		`"~w~","email":"~w~@mail.example"},"_npmVersion":"~<10~.~<20~.~<10~","_nodeVersion":"~<24~.~<20~.~<10~",` +
		`"dependencies":{~dependency 2-12~"tslib":"^2.~<20~.0"},"devDependencies":{~dependency 4-20~"typescript":` +
		`"~<6~.~<10~.~<10~"},"_hasShrinkwrap":false,"_npmOperationalInternal":{"host":"s3://registry-packages","tmp":` +
		`"tmp/some-package_~version~_1~<1073741824~~<99~_0.~<1073741824~~<1073741824~"}}`},

	// A page of a chat's history: text twice, as it is and in blocks, with every slash escaped.
	"chat": {`{"client_msg_id":"~hex 4~-~hex 2~-~hex 2~-~hex 2~-~hex 6~","type":"message","text":"` + said +
		`","user":"U~hex 5~","ts":"1~<1000000000~.~<1000000~","team":"T~hex 5~","blocks":[{"type":"rich_text","block_id":` +
		`"~base64 3~","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U~hex 5~"},{"type":` +
		`"text","text":" ~words 4-30~ "},{"type":"link","url":"https:\/\/code.example\/~w~\/~w~\/pull\/~<9999~","text":"#` +
		`~<9999~"},{"type":"emoji","name":"~w~_~w~","unicode":"1f44d"},{"type":"text","text":"\n~words 2-12~"}]}]}],` +
		`"reactions":[{"name":"~w~","users":["U~hex 5~","U~hex 5~"],"count":2}],"thread_ts":"1~<1000000000~.~<1000000~",` +
		`"reply_count":~<20~,"subscribed":false}`,
		`{"type":"message","subtype":"bot_message","text":"` + said + `","ts":"1~<1000000000~.~<1000000~","bot_i` +
			`d":"B~hex 5~",` +
			`"attachments":[{"fallback":"~words 3-9~","color":"~hex 3~","title":"~words 2-6~","title_link":"https:\/\/` +
			`ci.example\/~w~\/jobs\/~<1048576~?tab=~w~&amp;from=~w~","fields":[{"title":"~w~","value":"` + "`~hex 4~`" +
			`","short":true}],"image_url":"https:\/\/files.example\/T~hex 5~-F~hex 5~\/~hex 5~\/image_720.png"}]}`},
}

const (
	site = "https://code.example/~repo~"
	said = `<@U~hex 5~> ~words 4-30~ <https:\/\/code.example\/~w~\/~w~\/pull\/~<9999~|#~<9999~> &gt; ~words` +
		` 2-9~\n\u2022 ` +
		`~words 3-12~ \ud83d\ude80`
)
