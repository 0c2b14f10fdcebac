package corpus

// CodeHost returns the JSON of a code host's API: an array of issues, commits and pull requests, on one line, with
// hashes of 40 digits, identifiers in base64, URLs with queries and templates, and Markdown with \n, \r\n, \", \u003c.
func CodeHost(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.begin("[", ",")
		switch w.r.IntN(3) {
		case 0:
			w.issue()
		case 1:
			w.commit()
		default:
			w.pull()
		}
	})
}

const api = "https://api.code.example/repos/"

func (w *writer) user() {
	name, id := w.word()+"-"+w.word(), w.r.IntN(1<<27)
	w.text(`{"login":"`, name, `","id":`)
	w.int(id)
	w.text(`,"node_id":"`)
	w.node("User")
	w.text(`","avatar_url":"https://avatars.code.example/u/`)
	w.int(id)
	w.text(`?v=4","gravatar_id":"","url":"https://api.code.example/users/`, name,
		`","followers_url":"https://api.code.example/users/`, name, `/followers","following_url":"`,
		`https://api.code.example/users/`, name, `/following{/other_user}","gists_url":"https://api.code.example/users/`,
		name, `/gists{/gist_id}","type":"User","site_admin":false}`)
}

func (w *writer) issue() {
	repo := w.word() + "/" + w.word()
	w.text(`{"url":"`, api, repo, `/issues/`)
	w.below(9999)
	w.text(`","repository_url":"`, api, repo, `","labels_url":"`, api, repo, `/issues/1/labels{/name}","id":`)
	w.below(1 << 31)
	w.text(`,"node_id":"`)
	w.node("Issue")
	w.text(`","number":`)
	w.below(9999)
	w.text(`,"title":"`)
	w.prose(4, 12)
	w.text(`","user":`)
	w.user()
	w.text(`,"labels":[{"id":`)
	w.below(1 << 31)
	w.text(`,"node_id":"`)
	w.node("Label")
	w.text(`","name":"`, w.word(), `","color":"`)
	w.hex(3)
	w.text(`","default":false}],"state":"open","locked":false,"comments":`)
	w.below(50)
	w.text(`,"created_at":"`)
	w.time(false)
	w.text(`","closed_at":null,"author_association":"CONTRIBUTOR","body":"`)
	w.inJSON(3+w.r.IntN(6), `\r\n`)
	w.text(`","reactions":{"url":"`, api, repo, `/issues/1/reactions","total_count":0,"+1":0,"-1":0},"score":1.0}`)
}

func (w *writer) commit() {
	repo := w.word() + "/" + w.word()
	w.text(`{"sha":"`)
	at := len(w.b)
	w.hex(20)
	sha := string(w.b[at:])
	w.text(`","node_id":"`)
	w.base64(39)
	w.text(`","commit":{"author":{"name":"`, w.word(), " ", w.word(), `","email":"`, w.word(), `@mail.example","date":"`)
	w.time(false)
	w.text(`"},"message":"`)
	w.inJSON(1+w.r.IntN(3), `\n`)
	w.text(`","tree":{"sha":"`)
	w.hex(20)
	w.text(`","url":"`, api, repo, `/git/trees/`, sha, `"},"url":"`, api, repo, `/git/commits/`, sha,
		`","comment_count":0,"verification":{"verified":false,"reason":"unsigned","signature":null,"payload":null}},"url":"`,
		api, repo, `/commits/`, sha, `","html_url":"https://code.example/`, repo, `/commit/`, sha, `","author":`)
	w.user()
	w.text(`,"parents":[{"sha":"`)
	w.hex(20)
	w.text(`","url":"`, api, repo, `/commits/`, sha, `"}]}`)
}

func (w *writer) pull() {
	repo := w.word() + "/" + w.word()
	w.text(`{"url":"`, api, repo, `/pulls/`)
	w.below(9999)
	w.text(`","id":`)
	w.below(1 << 31)
	w.text(`,"node_id":"PR_`)
	w.base64(12)
	w.text(`","diff_url":"https://code.example/`, repo, `/pull/1.diff","title":"`)
	w.prose(4, 12)
	w.text(`","user":`)
	w.user()
	w.text(`,"body":"`)
	w.inJSON(2+w.r.IntN(8), `\r\n`)
	w.text(`","merge_commit_sha":"`)
	w.hex(20)
	w.text(`","statuses_url":"`, api, repo, `/statuses/`)
	w.hex(20)
	w.text(`","head":{"label":"`, repo, `","ref":"`)
	w.name("-")
	w.text(`","sha":"`)
	w.hex(20)
	w.text(`","repo":{"keys_url":"`, api, repo, `/keys{/key_id}","blobs_url":"`, api, repo,
		`/git/blobs{/sha}","trees_url":"`,
		api, repo, `/git/trees{/sha}","compare_url":"`, api, repo, `/compare/{base}...{head}","search_url":"`, api, repo,
		`/search?q=is:open+label:`, w.word(), `&per_page=100&page=`)
	w.below(9)
	w.text(`"}},"_links":{"self":{"href":"`, api, repo, `/pulls/1"}},"draft":false}`)
}

// inJSON writes paragraphs of Markdown inside a JSON string.
func (w *writer) inJSON(paragraphs int, newline string) {
	for i := range paragraphs {
		if i > 0 {
			w.text(newline, newline)
		}
		switch w.r.IntN(6) {
		case 0:
			w.text("```go", newline, "if err := ", w.word(), `(\"`, w.word(), `\"); err != nil {`, newline, `\treturn err`,
				newline,
				"}", newline, "```")
		case 1:
			w.text(`\u003cdetails\u003e\u003csummary\u003e`)
			w.prose(2, 4)
			w.text(`\u003c/summary\u003e`)
			w.prose(10, 30)
			w.text(`\u003c/details\u003e`)
		case 2:
			for range 2 + w.r.IntN(4) {
				w.text("- [ ] ")
				w.prose(3, 9)
				w.text(newline)
			}
		case 3:
			w.text("See [", w.word(), "](https://docs.code.example/", w.word(), "?tab=", w.word(), `\u0026view=`, w.word(),
				") and ")
			w.hex(20)
			w.text(".")
		default:
			w.prose(20, 60)
			w.text(", `", w.word(), "(", w.word(), ")` ")
			w.prose(5, 20)
			w.text(".")
		}
	}
}
