package corpus

// templates are the records, by name; of several, each is taken as often as it stands there. A part between two ~ is
// replaced: see [part]. ~NAME~ stands for a record of another name, and ~NAME 2-7~ for two to seven of them.
var templates = compile(apis, map[string][]string{
	"code-host": {issue, commit, pull},
	"user": {`{"login":"~name~","id":~<134217728~,"node_id":"~node User~",` +
		`"avatar_url":"https://avatars.code.example/u/` +
		`~<134217728~?v=4","gravatar_id":"","url":"https://api.code.example/users/~name~","followers_url":"` +
		`https://api.code.example/users/~name~/followers","following_url":"https://api.code.example/users/~name~` +
		`/following{/other_user}","gists_url":"https://api.code.example/users/~name~/gists{/gist_id}","type":"User",` +
		`"site_admin":false}`},
	// Markdown inside a JSON string, with both line ends.
	"text\r\n": {code + `\r\n\r\n`, details, todo, seeAlso, remark + `\r\n\r\n`, remark},
	"text\n":   {code + `\n\n`, details, todo, seeAlso, remark + `\n\n`, remark},
	"todo":     {`- [ ] ~words 3-9~\r\n`},

	"registry": {`"~version~":{"name":"some-package","version":"~version~","description":"` +
		`~words 4-10~","main":"lib/index.js","scripts":{"test":"node --test",` +
		`"build":"tsc -p ."},"repository":{"type":"git","url":"git+https://` +
		`code.example/~w~/some-package.git"},"author":{"name":"~w~ ~w~",` +
		`"email":"~w~@mail.example"},"license":"MIT","dependencies":{` +
		`~dependency 0-7~"tslib":"^2.~<20~.0"},"gitHead":"~hex 20~","dist":{"integrity":"sha512-~base64 64~","shasum":"` +
		`~hex 20~","tarball":"https://packages.example/some-package/-/some-package-~version~.tgz","fileCount":~<200~,` +
		`"unpackedSize":~<1048576~,"signatures":[{"keyid":"SHA256:~base64 32~","sig":"~base64 71~"}]},"_npmUser":` +
		`{"name":"~w~","email":"~w~@mail.example"},"directories":{},"published":"~fine~","engines":{"node":"\u003e=18"}}`},
	"dependency": {`"@~w~/~w~-~w~":"^~<20~.~<20~.0",`, `"@~w~/~w~-~w~-~<100~":"^~<20~.~<20~.0",`},

	"pretty-json": {"  {\n    \"id\": ~<1073741824~,\n    \"name\": \"~w~ ~w~ ~<100~\",\n    " +
		"\"sha\": \"~hex 20~\",\n    \"url\": \"https://api.example.com/~w~/~<1048576~\",\n    " +
		"\"tags\": [\n      \"~w~\",\n      \"~w~\"\n    ],\n    \"text\": \"~words 5-25~\",\n    " +
		"\"created\": \"~time~\",\n    \"ok\": true\n  }"},
	"uuids": {`{"id":"~hex 4~-~hex 2~-~hex 2~-~hex 2~-~hex 6~","name":"~w~ ~w~","text":"` +
		`~words 14-22~","count":~<1000~,"ok":true}`},
	"escapes": {`{"url":"https:\/\/api.example.com\/~w~\/~<1048576~?q=~w~%2F~w~%20~w~&amp;next=%2f~w~%3D~w~","say":"\"` +
		`~words 1-3~\" \u2013 ~w~ &lt;~w~&gt; &#39;~w~&#39;\n"}`},
	"repeated": {`{"id":12345,"name":"some name","url":"https://api.example.com/items/1",` +
		`"text":"A line, and one more.",` +
		`"ok":true},`},

	"markdown": {"# ~words 2-6~", "## ~words 2-6~", "~item 2-7~",
		"```sh\n$ ~w~ --~w~=~w~ | grep -v '~w~' > /tmp/~w~\n~words 4-12~\n```",
		"| ~w~ | ~w~ |\n| --- | ---: |\n~row 2-6~",
		"![~w~](https://img.example/~w~.svg?style=flat&label=~w~%20~w~&color=~hex 3~)",
		"    ~w~ := ~w~(\"~w~\\n\", &~w~{~w~: 0x~hex 4~})",
		"~line 5-12~", "~line 5-12~", "~line 5-12~"},
	"item": {"- **~w~**: ~words 4-14~ ([#~<9999~](https://code.example/~w~/issues/~<9999~))\n"},
	"row":  {"| ~words 1-4~ | ~<100000~ |\n"},
	"line": {"~words 8-13~\n", "~words 3-7~ `~w~` ~words 2-5~\n"},

	"html": {"    <div class=\"~w~ ~w~\" id=\"~w~-~<9999~\" data-hydro=\"~hex 32~\">\n",
		"      <li><a href=\"/~w~?tab=~w~&amp;page=~<99~&amp;q=~w~%3A~w~\" rel=\"nofollow\">~words 1-4~</a></li>\n",
		"  " +
			"    <script type=\"application/json\">{\"props\":{\"name\":\"~w~\",\"html\":\"\\u003cb\\u003e~w~\\u003c/b\\u003e" +
			"\",\"count\":~<999~}}</script>\n",
		"      <svg viewBox=\"0 0 16 16\" width=\"16\"><path d=\"M~point 12-12~z\"></path></svg>\n",
		"      <p>~words 15-60~ &mdash; ~w~&nbsp;~w~ &quot;~w~&quot;</p>\n"},
	"point": {"~<16~.~<100~ ", "~<16~.~<100~-", "~<16~.~<100~l", "~<16~.~<100~c", "~<16~.~<100~h"},

	"script": {`function ~letters~(e,t,n){var r=t.~w~||{},o=n?e:"~w~";return r[o]&&e.~w~(r,0x~hex 2~)}`,
		`var ~letters~="~w~\n\x1b[~<40~m",~w~=/^[\w\/+-]+={0,2}$/i.test(~w~);`, `e.exports={~member 2-7~};`,
		`t.push([~byte 4-23~0]);throw new Error("~words 2-7~\u2026");`,
		`if(this.~w~!==~letters~&&!~w~(~w~>>>2&63))for(let i=0;i<~w~.length;i++)~w~[i]^=i%7;`},
	"member": {"~w~:~<65536~,"},
	"byte":   {"~<256~,"},

	"base64":       {"~base64 768~"},
	"base64-lines": {"~base64 57~\r\n"}, // RFC 2045 section 6.8
	"hex":          {"~hex 512~"},
	"hex-dump":     {"~dump~\n"},

	"events": {event + `\n\n~w~` + "\"}}\n\n", event + ` \u2014 ~w~` + "\"}}\n\n", event + ` \"~w~\"` + "\"}}\n\n",
		event + ` ~w~ ~w~` + "\"}}\n\n", event + ` ~w~ ~w~` + "\"}}\n\n", event + ` ~w~ ~w~` + "\"}}\n\n"},
	"log": {"~fine~ INFO [~w~-~<16~] " + access, "~fine~ WARN [~w~-~<16~] " + traced,
		"~fine~ DEBUG [~w~-~<16~] " + traced},
})

const (
	page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n</head>\n<body>\n"

	issue = `{"url":"` + api + `/issues/~<9999~","repository_url":"` + api + `","labels_url":"` + api +
		`/issues/1/labels{/name}","id":~<2147483648~,"node_id":"~node Issue~","number":~<9999~,"title":"~words 4-12~",` +
		`"user":~user~,"labels":[{"id":~<2147483648~,"node_id":"~node Label~","name":"~w~","color":"~hex 3~",` +
		`"default":false}],"state":"open","locked":false,"comments":~<50~,"created_at":"~time~","closed_at":null,` +
		`"author_association":"CONTRIBUTOR","body":"` + "~text\r\n 3-8~" + `","reactions":{"url":"` + api +
		`/issues/1/reactions","total_count":0,"+1":0,"-1":0},"score":1.0}`
	commit = `{"sha":"~sha~","node_id":"~base64 39~","commit":{"author":{"name":"~w~ ~w~","email":"~w~@mail.example",` +
		`"date":"~time~"},"message":"` + "~text\n 1-3~" + `","tree":{"sha":"~hex 20~","url":"` + api +
		`/git/trees/~sha~"},"url":"` + api + `/git/commits/~sha~","comment_count":0,"verification":{"verified":false,` +
		`"reason":"unsigned","signature":null,"payload":null}},"url":"` + api + `/commits/~sha~","html_url":"` +
		`https://code.example/~repo~/commit/~sha~","author":~user~,"parents":[{"sha":"~hex 20~","url":"` + api +
		`/commits/~sha~"}]}`
	pull = `{"url":"` + api + `/pulls/~<9999~","id":~<2147483648~,"node_id":"PR_~base64 12~","diff_url":"` +
		`https://code.example/~repo~/pull/1.diff","title":"~words 4-12~","user":~user~,"body":"` + "~text\r\n 2-9~" +
		`","merge_commit_sha":"~hex 20~","statuses_url":"` + api + `/statuses/~hex 20~","head":{"label":"~repo~","ref":"` +
		`~w~-~w~","sha":"~hex 20~","repo":{"keys_url":"` + api + `/keys{/key_id}","blobs_url":"` + api +
		`/git/blobs{/sha}","trees_url":"` + api + `/git/trees{/sha}","compare_url":"` + api +
		`/compare/{base}...{head}","search_url":"` + api + `/search?q=is:open+label:~w~&per_page=100&page=~<9~"}},` +
		`"_links":{"self":{"href":"` + api + `/pulls/1"}},"draft":false}`
	api = "https://api.code.example/repos/~repo~"

	code    = "```go" + `\nif err := ~w~(\"~w~\"); err != nil {\n\treturn err\n}\n` + "```"
	details = `\u003cdetails\u003e\u003csummary\u003e~words 2-4~\u003c/summary\u003e~words 10-30~\u003c/details\u003e`
	todo    = `~todo 2-5~`
	seeAlso = `See [~w~](https://docs.code.example/~w~?tab=~w~\u0026view=~w~) and ~hex 20~.`
	remark  = "~words 20-60~, `~w~(~w~)` ~words 5-20~."

	event = "event: content_block_delta\ndata: " +
		`{"type":"content_block_delta","index":~<3~,"delta":{"type":"text_delta","text":"`
	access = `10.~<256~.~<256~.7 - - "GET /~w~/~w~?id=~<1048576~&sort=~w~%20desc HTTP/1.1" 200 ~<65536~`
	traced = `~words 3-12~ ~w~=~<10000~ duration=~<1000~ms trace=~hex 16~`
)
