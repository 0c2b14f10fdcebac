package shims

// Notes returns what an agent is told about its sandbox before its first prompt:
// short, because it is part of every conversation, and the same in every session.
// What may be requested is in the file of [ToolsFile].
func Notes() []byte { return []byte(notes) }

const notes = `# This is an Aileron sandbox

Everything that is sent from here passes Aileron, which allows only some requests, unless the person who started it lets
others pass. /etc/aileron/tools.txt lists them: read it before you use a service or install a package. Each connector in
it is a command: NAME --help.

- A request that is refused gets status 403, and JSON whose "message" says why. Sending it again or in another way does
  not help. Tell the person what was refused: "aileron allow HOST", on the machine outside of this sandbox, allows it.
- Credentials are added to requests after they have left the sandbox. Variables such as API keys and tokens hold
  placeholders, which work where a request is allowed. There is no key to look for here, and none to ask for.
- gh: most of its commands need POST https://api.github.com/graphql, which may be refused. git, "gh api" with a path of
  the REST API, and the command github, if there is one, do without: github pulls.create --help.
- Files of the project stay. All others are lost when the sandbox ends, except for your own state.
`
