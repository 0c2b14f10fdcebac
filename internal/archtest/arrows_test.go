package archtest

import (
	"strings"
	"testing"
)

// arrow is one allowed import: of package to, by package from.
type arrow struct{ from, to, why string }

// matches reports whether the row is about an import of to by from. A name that ends in "/..." stands for the
// packages below it too, and "*" for any package.
func (a arrow) matches(from, to string) bool {
	return inTree(a.from, from) && inTree(a.to, to)
}

func inTree(pattern, pkg string) bool {
	if pattern == "*" || pattern == pkg {
		return true
	}
	tree, ok := strings.CutSuffix(pattern, "/...")
	return ok && (pkg == tree || strings.HasPrefix(pkg, tree+"/"))
}

// arrows is every import that one of our packages makes of another; tests may import what they need. A package that
// is not named on the left is a leaf. A row on its own line, sorted, so that two changes seldom meet.
var arrows = []arrow{
	{"*", "internal/hint", "an error for people carries what to do about it"},
	{"*", "internal/hostport", "host names and ports have one rule"},
	{"audit", "audit/internal/chain", "rows, and what makes them evidence"},
	{"audit", "audit/internal/follow", "shows rows as they are written"},
	{"audit", "audit/internal/journal", "where a session's rows are durable first"},
	{"audit", "audit/internal/table", "the database"},
	{"audit", "internal/panics", "a panic in the writer ends the log, not the program"},
	{"audit/export", "audit", "writes its rows"},
	{"audit/internal/follow", "audit/internal/chain", "the rows that it shows"},
	{"audit/internal/follow", "audit/internal/table", "reads them"},
	{"audit/internal/journal", "audit/internal/chain", "the rows and the heads that its frames and its mark have"},
	{"audit/internal/table", "audit/internal/chain", "the rows that it stores, and their hashes"},
	{"audit/rebuild", "audit", "records what was recovered, and opens the new log"},
	{"audit/rebuild", "audit/internal/chain", "which rows the log had, and whether one has its hash"},
	{"audit/rebuild", "audit/internal/table", "the schema, and which errors mean damage"},
	{"cmd/aileron", "audit", "opens the log, and prints, exports, verifies and recovers it"},
	{"cmd/aileron", "ca", "certificates for the origin of the demo"},
	{"cmd/aileron", "internal/detached", "attaches a terminal to a session, and prints its output"},
	{"cmd/aileron", "internal/review", "what lists and answers about the audit log have beside its rows"},
	{"cmd/aileron", "proxy", "spec match asks what the proxy would decide"},
	{"cmd/aileron", "sandbox/agents", "the command, image and settings of an agent"},
	{"cmd/aileron", "spec/action", "adds, shows and removes actions"},
	{"cmd/aileron", "spec/catalog", "installs connectors by short names, and resolves these"},
	{"cmd/aileron", "vault", "binds and resolves credentials"},
	{"cmd/aileron/...", "audit", "opens the log, and prints, exports, verifies and recovers it"},
	{"cmd/aileron/...", "audit/export", "exports the log as HAR and CSV"},
	{"cmd/aileron/...", "audit/rebuild", "recovers the log"},
	{"cmd/aileron/...", "ca", "certificates for the origin of the demo"},
	{"cmd/aileron/...", "cmd/aileron/internal/...", "a package a noun, over what commands share"},
	{"cmd/aileron/...", "internal/actions", "adds, describes and runs actions"},
	{"cmd/aileron/...", "internal/allow", "makes the connector that allows what was refused"},
	{"cmd/aileron/...", "internal/approvals", "prints what waits, and revokes"},
	{"cmd/aileron/...", "internal/auditlog", "reports the state of the audit log"},
	{"cmd/aileron/...", "internal/auditpage", "serves the log as a page"},
	{"cmd/aileron/...", "internal/auditschema", "prints the schema of a row"},
	{"cmd/aileron/...", "internal/bindings", "binds credentials"},
	{"cmd/aileron/...", "internal/changes", "records what commands change"},
	{"cmd/aileron/...", "internal/config", "merges flags with config.toml"},
	{"cmd/aileron/...", "internal/connectors", "resolves the names of connectors"},
	{"cmd/aileron/...", "internal/connectorschema", "prints the schemas of a connector's files"},
	{"cmd/aileron/...", "internal/connectortest", "tries the operations of a connector"},
	{"cmd/aileron/...", "internal/console", "asks and prints on the terminal"},
	{"cmd/aileron/...", "internal/demo", "plays the demo"},
	{"cmd/aileron/...", "internal/detached", "attaches a terminal to a session, and prints its output"},
	{"cmd/aileron/...", "internal/doctor", "prints its findings"},
	{"cmd/aileron/...", "internal/failure", "the classes and reasons of errors"},
	{"cmd/aileron/...", "internal/home", "opens what is in the home"},
	{"cmd/aileron/...", "internal/hosttrust", "trusts a session's root on this host, and undoes it"},
	{"cmd/aileron/...", "internal/launch", "runs commands behind sessions"},
	{"cmd/aileron/...", "internal/mcpserver", "serves a session's operations as tools"},
	{"cmd/aileron/...", "internal/networks", "how upstreams are reached"},
	{"cmd/aileron/...", "internal/otlp", "reads from the environment where rows are exported to"},
	{"cmd/aileron/...", "internal/project", "flags that a project's file adds to"},
	{"cmd/aileron/...", "internal/propose", "proposes connectors, and says what of them is unused"},
	{"cmd/aileron/...", "internal/protect", "keeps secrets out of children and core dumps"},
	{"cmd/aileron/...", "internal/regular", "reads the Dockerfile of a repository"},
	{"cmd/aileron/...", "internal/report", "prints the end of a session"},
	{"cmd/aileron/...", "internal/review", "what lists and answers about the audit log have beside its rows"},
	{"cmd/aileron/...", "internal/session", "opens, lists and stops sessions"},
	{"cmd/aileron/...", "internal/setup", "sets up an agent"},
	{"cmd/aileron/...", "internal/terminal", "the size of the terminal from which a session is detached"},
	{"cmd/aileron/...", "internal/termsafe", "prints what others wrote without control characters"},
	{"cmd/aileron/...", "internal/unlock", "finds the vault's passphrase"},
	{"cmd/aileron/...", "proxy", "spec match asks what the proxy would decide"},
	{"cmd/aileron/...", "proxy/approval", "decides about requests that wait"},
	{"cmd/aileron/...", "proxy/upstream", "sets how upstreams are reached"},
	{"cmd/aileron/...", "sandbox", "checks and builds images, and removes leftovers"},
	{"cmd/aileron/...", "sandbox/agents", "the command, image and settings of an agent"},
	{"cmd/aileron/...", "sandbox/devcontainer", "prints the plan of a sandbox"},
	{"cmd/aileron/...", "sandbox/engine", "reports the waits for the engine"},
	{"cmd/aileron/...", "sandbox/gateway", "the same binary is the gateway of a sandbox"},
	{"cmd/aileron/...", "spec", "reads connectors"},
	{"cmd/aileron/...", "spec/action", "adds, shows and removes actions"},
	{"cmd/aileron/...", "spec/catalog", "installs connectors by short names, and resolves these"},
	{"cmd/aileron/...", "spec/graphql", "makes a new connector of a GraphQL schema"},
	{"cmd/aileron/...", "spec/local", "allows what was refused"},
	{"cmd/aileron/...", "spec/openapi", "makes a new connector of an OpenAPI document"},
	{"cmd/aileron/...", "spec/scaffold", "writes the files of a new connector"},
	{"cmd/aileron/...", "spec/signature", "signs and verifies connectors, and keeps publishers' keys"},
	{"cmd/aileron/...", "spec/source", "fetches connectors, and lists their versions"},
	{"cmd/aileron/...", "spec/store", "installs, verifies and loads connectors"},
	{"cmd/aileron/...", "vault", "binds and resolves credentials"},
	{"cmd/aileron/...", "vault/keeper", "holds the key of an unlocked vault, and asks for it"},
	{"cmd/aileron/...", "vault/oauth", "describes what becomes of the tokens of a login"},
	{"e2e/...", "*", "tests only: nothing that is released imports them"},
	{"internal/actions", "audit", "the events of actions"},
	{"internal/actions", "internal/changes", "records what it changes"},
	{"internal/actions", "internal/connectors", "the connectors that actions pin, and what is fetched"},
	{"internal/actions", "internal/console", "asks and prints"},
	{"internal/actions", "internal/failure", "what was declined, and errors of files"},
	{"internal/actions", "internal/home", "where actions and connectors are"},
	{"internal/actions", "internal/launch", "the session in which an action runs"},
	{"internal/actions", "shims", "whose command another one has"},
	{"internal/actions", "spec", "what an operation is"},
	{"internal/actions", "spec/action", "reads and links actions"},
	{"internal/actions", "spec/source", "names what is published"},
	{"internal/actions", "spec/store", "the connectors that actions pin"},
	{"internal/actions", "vault", "which of them have a credential"},
	{"internal/allow", "audit", "the row of a refused request"},
	{"internal/allow", "internal/auditlog", "reports the state of the audit log"},
	{"internal/allow", "internal/connectors", "whether two connectors grant the same"},
	{"internal/allow", "internal/failure", "usage errors"},
	{"internal/allow", "internal/home", "where the audit log is"},
	{"internal/allow", "spec", "what connectors allow"},
	{"internal/allow", "spec/catalog", "whether the catalogue has a connector for a host"},
	{"internal/allow", "spec/local", "the connector of what is allowed"},
	{"internal/approvals", "audit", "ids, and the row of what is revoked"},
	{"internal/approvals", "internal/console", "how wide what is shown may be"},
	{"internal/approvals", "internal/durable", "a decision for always survives a power cut"},
	{"internal/approvals", "internal/format", "its file has a format version"},
	{"internal/approvals", "internal/regular", "reads no link, no pipe, and no large file"},
	{"internal/approvals", "internal/review", "shortens ids and values"},
	{"internal/approvals", "internal/termsafe", "prints what an agent wrote without control characters"},
	{"internal/approvals", "internal/unixsocket", "the socket of a decider"},
	{"internal/approvals", "proxy/approval", "the questions and the decisions"},
	{"internal/approvals", "spec", "the requests that a person wants to be asked about"},
	{"internal/auditlog", "audit", "what its states mean for people"},
	{"internal/auditpage", "audit", "reads the rows that a page shows"},
	{"internal/auditpage", "internal/approvals", "shows what waits, as the command does"},
	{"internal/auditpage", "internal/failure", "an address that is none for this machine alone is wrong usage"},
	{"internal/auditpage", "internal/auditlog", "what the states of the log mean for people"},
	{"internal/auditpage", "internal/review", "tells exchanges, and finds sessions, as the commands do"},
	{"internal/auditpage", "internal/termsafe", "shows what others wrote as text"},
	{"internal/auditpage", "proxy/approval", "decides about requests that wait"},
	{"internal/auditschema", "audit", "the columns and events that it describes"},
	{"internal/auditschema", "proxy", "the reasons of denials"},
	{"internal/bindings", "audit", "the events of bindings"},
	{"internal/bindings", "internal/changes", "records what it changes"},
	{"internal/bindings", "internal/connectors", "which connectors are installed"},
	{"internal/bindings", "internal/console", "asks for the address at which a browser elsewhere ended"},
	{"internal/bindings", "internal/failure", "usage errors"},
	{"internal/bindings", "internal/unlock", "the vault, and who is asked for a secret"},
	{"internal/bindings", "proxy/upstream", "reaches authorization servers as the plane reaches upstreams"},
	{"internal/bindings", "spec", "which credential a connector needs"},
	{"internal/bindings", "spec/signature", "who published what a person logs in for"},
	{"internal/bindings", "spec/store", "which connectors are installed"},
	{"internal/bindings", "vault", "keeps the bindings"},
	{"internal/bindings", "vault/oauth", "logs in"},
	{"internal/changes", "audit", "records the intent and the outcome"},
	{"internal/changes", "internal/failure", "the reason of a change that failed"},
	{"internal/changes", "internal/filelock", "a change under way holds a lock"},
	{"internal/changes", "internal/format", "the file of a pending change has a format version"},
	{"internal/changes", "internal/home", "opens the log, and what shows whether a change took effect"},
	{"internal/changes", "spec/action", "whether an action was added"},
	{"internal/changes", "spec/signature", "whether a key was added"},
	{"internal/changes", "vault", "whether a binding or the vault was changed"},
	{"internal/config", "internal/durable", "what setup adds to config.toml is there whole or not at all"},
	{"internal/config", "internal/format", "config.toml has a format version"},
	{"internal/config", "internal/regular", "reads the file of a project"},
	{"internal/connectors", "audit", "the events of what is installed and refused"},
	{"internal/connectors", "internal/changes", "records the first key of a publisher"},
	{"internal/connectors", "internal/config", "the sources of connectors"},
	{"internal/connectors", "internal/console", "how wide what is described may be, and what a transfer shows"},
	{"internal/connectors", "internal/failure", "a name that is none is a usage error"},
	{"internal/connectors", "internal/home", "what is installed"},
	{"internal/connectors", "internal/unlock", "the passphrase of a publisher's key is asked for as the vault's"},
	{"internal/connectors", "proxy/upstream", "fetches through the rules of the proxy"},
	{"internal/connectors", "sandbox/agents", "whether a connector is for the model of an agent"},
	{"internal/connectors", "spec", "the names of connectors"},
	{"internal/connectors", "spec/action", "the size of an action"},
	{"internal/connectors", "spec/catalog", "the short names of the catalogue"},
	{"internal/connectors", "spec/signature", "who published a connector"},
	{"internal/connectors", "spec/source", "fetches from the sources"},
	{"internal/connectors", "spec/store", "the names of what is installed"},
	{"internal/connectors", "vault", "what is bound"},
	{"internal/connectortest", "audit", "reads the declared fields of the rows"},
	{"internal/connectortest", "ca", "certificates for the stub and for the plane"},
	{"internal/connectortest", "proxy", "sends each request through a plane"},
	{"internal/connectortest", "proxy/front", "serves the plane"},
	{"internal/connectortest", "proxy/scrub", "the secret that the plane redacts"},
	{"internal/connectortest", "proxy/upstream", "the stub stands for the connector's hosts"},
	{"internal/connectortest", "spec/content", "calls a tool of MCP"},
	{"internal/connectortest", "spec", "the operations that it tries"},
	{"internal/connectortest", "vault", "the credential that is injected"},
	{"internal/console", "internal/termsafe", "prints what others wrote without control characters"},
	{"internal/daybook", "internal/format", "the file of a day has a format version"},
	{"internal/daybook", "proxy/meter", "keeps the accounts of its budgets"},
	{"internal/demo", "audit", "what the log has of the demo"},
	{"internal/demo", "ca", "certificates for the origin"},
	{"internal/demo", "internal/home", "the vault of the demo"},
	{"internal/demo", "spec/store", "installs the demo's connector"},
	{"internal/demo", "vault", "binds the demo's secret"},
	{"internal/detached", "internal/filelock", "a process that writes its messages holds a lock"},
	{"internal/detached", "internal/console", "the exit code of a process whose command has not begun"},
	{"internal/detached", "internal/terminal", "the terminal of the person who is attached"},
	{"internal/detached", "internal/unixsocket", "the socket at which a terminal is attached"},
	{"internal/detached", "vault", "unlocks it with the key that was handed over"},
	{"internal/detached", "vault/keeper", "how long a key can be"},
	{"internal/doctor", "audit", "verifies the log"},
	{"internal/doctor", "internal/approvals", "whether the decider can be asked"},
	{"internal/doctor", "internal/auditlog", "what the states of the log mean for people"},
	{"internal/doctor", "internal/config", "reads the settings"},
	{"internal/doctor", "internal/connectors", "who published what is installed"},
	{"internal/doctor", "internal/home", "opens what it checks"},
	{"internal/doctor", "internal/hosttrust", "finds roots that a killed session left"},
	{"internal/doctor", "internal/launch", "how many files a session needs"},
	{"internal/doctor", "internal/review", "describes a finding"},
	{"internal/doctor", "internal/session", "lists the sessions"},
	{"internal/doctor", "internal/unlock", "whether the vault opens"},
	{"internal/doctor", "proxy/upstream", "what a name with known addresses shows of the network"},
	{"internal/doctor", "sandbox", "finds the engines"},
	{"internal/doctor", "sandbox/agents", "whether an agent has a model"},
	{"internal/doctor", "sandbox/engine", "how long engines are waited for"},
	{"internal/doctor", "spec", "the connectors that are installed"},
	{"internal/doctor", "spec/signature", "who signed them"},
	{"internal/doctor", "vault", "the state of the vault"},
	{"internal/doctor", "vault/oauth", "what becomes of the tokens of a login"},
	{"internal/failure", "audit", "an event that does not exist"},
	{"internal/failure", "spec/action", "an action that does not exist"},
	{"internal/failure", "spec/store", "a connector that does not exist"},
	{"internal/failure", "vault", "a binding that does not exist"},
	{"internal/gitlayout", "internal/regular", "reads files that a sandbox may have replaced by links or pipes"},
	{"internal/hint", "internal/format", "what to do about the file of a newer aileron"},
	{"internal/home", "audit", "opens the log"},
	{"internal/home", "internal/auditlog", "what the states of the log mean for people"},
	{"internal/home", "internal/config", "how durable the log is"},
	{"internal/home", "internal/filelock", "locks the files of the home"},
	{"internal/home", "spec/action", "the action files"},
	{"internal/home", "spec/signature", "the publishers' keys"},
	{"internal/home", "spec/store", "the connector store"},
	{"internal/home", "vault", "the vault"},
	{"internal/hosttrust", "audit", "records what trust stores are given"},
	{"internal/hosttrust", "ca", "adds a root to the trust stores of this host"},
	{"internal/hosttrust", "internal/durable", "its records survive a power cut"},
	{"internal/hosttrust", "internal/filelock", "locks the account of trusted roots"},
	{"internal/hosttrust", "internal/format", "the record of a trusted root has a format version"},
	{"internal/launch", "ca", "bundles the session's CA with the roots of this host"},
	{"internal/launch", "internal/config", "the limits of sandboxes"},
	{"internal/launch", "internal/detached", "the terminal of a command without a person's"},
	{"internal/launch", "internal/failure", "usage errors"},
	{"internal/launch", "internal/gitlayout", "what git needs of a repository outside of the project"},
	{"internal/launch", "internal/hostfiles", "compares what the host would run of a project"},
	{"internal/launch", "internal/procid", "whether an engine's service still lives"},
	{"internal/launch", "internal/regular", "reads files of a worktree"},
	{"internal/launch", "internal/session", "opens, serves and closes the session of a command"},
	{"internal/launch", "internal/terminal", "the state of the person's terminal"},
	{"internal/launch", "internal/trust", "makes the clients of an image trust the session's CA"},
	{"internal/launch", "internal/unixsocket", "the sockets of the gateway"},
	{"internal/launch", "proxy", "the name of the session's API"},
	{"internal/launch", "proxy/front", "describes the listeners of the proxy"},
	{"internal/launch", "sandbox", "prepares and runs the sandbox"},
	{"internal/launch", "sandbox/agents", "the error for an agent that does not exist, and what one needs"},
	{"internal/launch", "sandbox/devcontainer", "names what the label of an image asks for"},
	{"internal/launch", "sandbox/engine", "limits, patience and errors of engines"},
	{"internal/launch", "sandbox/gateway", "the other end of the published ports"},
	{"internal/launch", "shims", "renders the list of tools"},
	{"internal/launch", "spec", "the files of a connector have names"},
	{"internal/launch", "vault", "searches what a build gets for bound secrets"},
	{"internal/launch", "vault/keeper", "hides the directory of the vault's key from sandboxes"},
	{"internal/mcpserver", "internal/launch", "a session of the server's own"},
	{"internal/mcpserver", "proxy/api", "the list of a session's operations, as its API has it"},
	{"internal/mcpserver", "spec", "reads the arguments of its own tools as strictly as a session"},
	{"internal/networks", "internal/config", "what config.toml has of the network"},
	{"internal/networks", "internal/failure", "usage errors"},
	{"internal/networks", "proxy/address", "ranges that may be allowed"},
	{"internal/networks", "proxy/upstream", "the settings of the way upstream"},
	{"internal/otlp", "audit", "exports its rows"},
	{"internal/project", "internal/approvals", "the requests that a project wants to be asked about"},
	{"internal/project", "internal/config", "the keys of the file"},
	{"internal/project", "internal/connectors", "resolves the names of connectors"},
	{"internal/project", "internal/console", "asks for consent"},
	{"internal/project", "internal/failure", "what was declined, and usage errors"},
	{"internal/project", "internal/home", "where consent is remembered"},
	{"internal/project", "internal/launch", "which mounts, ports and variables a sandbox may have"},
	{"internal/project", "internal/protect", "a command on this host gets no secret of aileron's"},
	{"internal/project", "internal/regular", "reads the Dockerfile of a repository"},
	{"internal/project", "internal/session", "what a session records of what is shared"},
	{"internal/project", "internal/termsafe", "shows a Dockerfile without control characters"},
	{"internal/project", "sandbox", "the image with what is added to it"},
	{"internal/project", "sandbox/agents", "the names of agents"},
	{"internal/project", "sandbox/devcontainer", "what the project's devcontainer.json asks for"},
	{"internal/project", "sandbox/dockerfile", "the size of a Dockerfile"},
	{"internal/project", "sandbox/engine", "a mount of a sandbox"},
	{"internal/project", "spec", "names of connectors and hosts"},
	{"internal/project", "vault", "which identities are bound"},
	{"internal/propose", "audit", "the rows of what sessions did"},
	{"internal/propose", "internal/approvals", "the requests that a project's file asks about"},
	{"internal/propose", "internal/auditlog", "reports the state of the audit log"},
	{"internal/propose", "internal/connectors", "what is installed"},
	{"internal/propose", "internal/console", "tables that fit the terminal"},
	{"internal/propose", "internal/failure", "usage errors"},
	{"internal/propose", "internal/home", "where the audit log and the notes are"},
	{"internal/propose", "internal/learn", "templates of the paths"},
	{"internal/propose", "internal/review", "finds sessions by the beginning of an id"},
	{"internal/propose", "spec", "what connectors allow"},
	{"internal/propose", "spec/catalog", "whether the catalogue has a connector for a host"},
	{"internal/propose", "spec/scaffold", "writes the connector"},
	{"internal/report", "audit", "the row of a refused request"},
	{"internal/report", "internal/connectors", "what is allowed now"},
	{"internal/report", "internal/console", "prints in the columns of the terminal"},
	{"internal/report", "internal/home", "where connectors are"},
	{"internal/report", "internal/hostfiles", "the files that the host would run"},
	{"internal/report", "internal/launch", "what ended"},
	{"internal/report", "internal/review", "what a reviewer is told of a row"},
	{"internal/report", "internal/session", "what the session counted"},
	{"internal/report", "internal/termsafe", "prints what others wrote without control characters"},
	{"internal/report", "proxy", "the reasons of denials"},
	{"internal/report", "sandbox/agents", "which hosts an agent can do without"},
	{"internal/report", "spec", "what is granted"},
	{"internal/report", "spec/catalog", "which connector of the catalogue would allow it"},
	{"internal/review", "audit", "answers a reviewer's questions from its rows"},
	{"internal/review", "internal/console", "tables that fit the terminal"},
	{"internal/review", "internal/failure", "usage errors"},
	{"internal/review", "internal/termsafe", "prints what others wrote without control characters"},
	{"internal/review", "spec", "names of connectors"},
	{"internal/review", "spec/catalog", "short names of connectors"},
	{"internal/session", "audit", "records its beginning and its end"},
	{"internal/session", "ca", "makes the session's CA"},
	{"internal/session", "internal/approvals", "asks what is decided for always"},
	{"internal/session", "internal/auditlog", "reports the state of the audit log"},
	{"internal/session", "internal/config", "the settings of its home"},
	{"internal/session", "internal/daybook", "what the sessions of its home use in a day"},
	{"internal/session", "internal/detached", "whether a terminal is attached to a session"},
	{"internal/session", "internal/dirwatch", "changes of the store, the actions and the vault"},
	{"internal/session", "internal/filelock", "a session that runs holds a lock"},
	{"internal/session", "internal/format", "session.json has a format version"},
	{"internal/session", "internal/hostfiles", "session.ended names the files that the host would run"},
	{"internal/session", "internal/hosttrust", "removes its root from the trust stores of this host"},
	{"internal/session", "internal/learn", "notes what requests of a learning session are made of"},
	{"internal/session", "internal/otlp", "exports the rows of its log"},
	{"internal/session", "internal/termsafe", "the error of a renewal becomes one line of a row"},
	{"internal/session", "internal/unixsocket", "the control socket"},
	{"internal/session", "proxy", "runs the plane"},
	{"internal/session", "proxy/api", "describes the session to its owner as to the sandbox"},
	{"internal/session", "proxy/approval", "has the requests that wait for the owner"},
	{"internal/session", "proxy/budget", "sets the plane's memory bounds"},
	{"internal/session", "proxy/capture", "opens and closes the capture"},
	{"internal/session", "proxy/front", "serves the plane"},
	{"internal/session", "proxy/meter", "the session's budget"},
	{"internal/session", "proxy/scrub", "the secrets that the plane redacts"},
	{"internal/session", "proxy/upstream", "passes on how upstreams are reached"},
	{"internal/session", "proxy/wire", "sets the time-outs of connections"},
	{"internal/session", "spec", "indexes what connectors allow"},
	{"internal/session", "spec/action", "reads the actions of the home"},
	{"internal/session", "spec/local", "the hosts that --allow names"},
	{"internal/session", "spec/store", "verifies and loads connectors"},
	{"internal/session", "vault", "opens what is bound"},
	{"internal/session", "vault/oauth", "renews tokens"},
	{"internal/setup", "audit", "the event of a vault that is created"},
	{"internal/setup", "internal/bindings", "binds what was asked for"},
	{"internal/setup", "internal/changes", "records the creation of the vault"},
	{"internal/setup", "internal/config", "keeps whether agents ask"},
	{"internal/setup", "internal/connectors", "shows and installs connectors"},
	{"internal/setup", "internal/console", "asks and prints"},
	{"internal/setup", "internal/failure", "what was declined, and usage errors"},
	{"internal/setup", "internal/launch", "the error for an agent that does not exist"},
	{"internal/setup", "internal/unlock", "the vault, and its passphrase"},
	{"internal/setup", "sandbox", "builds the agent's image"},
	{"internal/setup", "sandbox/agents", "what an agent needs"},
	{"internal/setup", "spec", "whether connectors can be used together"},
	{"internal/setup", "spec/catalog", "the connectors that an agent needs"},
	{"internal/setup", "spec/store", "what is installed"},
	{"internal/setup", "vault", "what is bound"},
	{"internal/trust", "ca", "merges roots into bundles and stores"},
	{"internal/trust", "internal/imagefs", "puts files where an image's links lead"},
	{"internal/unlock", "audit", "the event of a vault that is created"},
	{"internal/unlock", "internal/changes", "records the creation of the vault"},
	{"internal/unlock", "internal/console", "asks for the passphrase"},
	{"internal/unlock", "internal/home", "finds the vault"},
	{"internal/unlock", "internal/protect", "keeps a passphrase's descriptor from children"},
	{"internal/unlock", "vault", "unlocks the vault"},
	{"internal/unlock", "vault/keeper", "asks the process that holds the key"},
	{"proxy", "audit", "records each exchange"},
	{"proxy", "ca", "the session's CA is in its configuration"},
	{"proxy", "proxy/approval", "holds requests that need an approval"},
	{"proxy", "proxy/budget", "bounds what exchanges hold in memory"},
	{"proxy", "proxy/capture", "hands over what it is to record"},
	{"proxy", "proxy/fair", "shares the processor time among bodies"},
	{"proxy", "proxy/internal/summary", "counts denials that get no row of their own"},
	{"proxy", "proxy/judge", "what a body asks for, where operations decide by it"},
	{"proxy", "proxy/meter", "what operations use up, and the limits of it"},
	{"proxy", "proxy/modify", "changes the request and the response, step by step"},
	{"proxy", "proxy/scrub", "redacts credentials in responses"},
	{"proxy", "proxy/upstream", "the only way out"},
	{"proxy", "proxy/websocket", "scrubs an upgraded stream frame by frame"},
	{"proxy", "proxy/wire", "reads and writes HTTP/1.1 with the client"},
	{"proxy", "spec", "decides which operation allows a request"},
	{"proxy", "spec/action", "grants have the actions of the home"},
	{"proxy", "vault", "resolves the credential that is injected"},
	{"proxy/api", "audit", "the source of a call's rows"},
	{"proxy/api", "internal/panics", "a panic ends one call, never the session"},
	{"proxy/api", "internal/termsafe", "hands a denial's message to a shell as one printable line"},
	{"proxy/api", "proxy", "decides about the request of a call, and sends it"},
	{"proxy/api", "proxy/approval", "tells the sandbox the state of an approval"},
	{"proxy/api", "proxy/budget", "bounds what calls hold in memory"},
	{"proxy/api", "proxy/modify", "knows a request of gRPC, whose denial has a form of its own"},
	{"proxy/api", "proxy/wire", "judges a carried request as one on the wire"},
	{"proxy/api", "spec", "makes the request of a call"},
	{"proxy/api", "spec/action", "runs actions"},
	{"proxy/approval", "audit", "the events of what waits"},
	{"proxy/capture", "audit", "the rows of what it records"},
	{"proxy/capture", "audit/export", "an entry is that of the exchange's row, with more in it"},
	{"proxy/capture", "proxy/scrub", "redacts secrets in what it records"},
	{"proxy/front", "audit", "the source of a row"},
	{"proxy/front", "ca", "terminates TLS with the session's CA"},
	{"proxy/front", "internal/panics", "a panic ends one exchange, never the session"},
	{"proxy/front", "proxy", "decides about each request, and sends it"},
	{"proxy/front", "proxy/api", "hands over requests for the session's API"},
	{"proxy/front", "proxy/budget", "the descriptors and the memory of clients"},
	{"proxy/front", "proxy/internal/summary", "counts connections that get no row of their own"},
	{"proxy/front", "proxy/upstream", "knows a process that is out of descriptors"},
	{"proxy/front", "proxy/wire", "reads and writes HTTP/1.1 with the client"},
	{"proxy/front", "proxy/wire/h2", "reads and writes HTTP/2 with the client"},
	{"proxy/judge", "spec", "operations, and fields that lead a request elsewhere"},
	{"proxy/judge", "spec/content", "what an operation allows a body to ask for"},
	{"proxy/judge", "spec/condition", "whether a condition for approvals holds"},
	{"proxy/meter", "spec", "which numbers of a response are looked for"},
	{"proxy/modify", "proxy/opaque", "rejects bodies that cannot be searched"},
	{"proxy/modify", "proxy/scrub", "redacts credentials in responses"},
	{"proxy/modify", "proxy/wire", "reads field names as the wire does"},
	{"proxy/modify", "spec", "what an operation accepts, and where its credential goes"},
	{"proxy/modify", "vault", "the credential that is injected"},
	{"proxy/upstream", "proxy/address", "which addresses may be dialled"},
	{"proxy/upstream", "proxy/budget", "the larger windows of HTTP/2 are taken out of the budget"},
	{"proxy/upstream", "proxy/wire", "reads field names as the wire does"},
	{"proxy/websocket", "proxy/budget", "bounds what a frame holds in memory"},
	{"proxy/wire", "internal/peer", "whether a client that has closed its outbound half still reads"},
	{"proxy/wire", "proxy/budget", "bounds what a connection holds in memory"},
	{"proxy/wire/h2", "internal/panics", "a panic ends one stream"},
	{"proxy/wire/h2", "proxy/budget", "bounds what a stream holds in memory"},
	{"proxy/wire/h2", "proxy/wire", "shares the rules of heads and bodies"},
	{"sandbox", "internal/dirwatch", "a socket of a sandbox that is removed"},
	{"sandbox", "internal/imagefs", "the files of an image"},
	{"sandbox", "internal/procid", "containers are labelled with the process that made them"},
	{"sandbox", "internal/terminal", "the terminal of its command"},
	{"sandbox", "sandbox/dockerfile", "which Dockerfiles may be built"},
	{"sandbox", "sandbox/engine", "makes and watches its containers"},
	{"sandbox/devcontainer", "internal/regular", "reads files of a repository"},
	{"sandbox/devcontainer", "internal/termsafe", "what a project names stays in its line"},
	{"sandbox/devcontainer", "sandbox/dockerfile", "which Dockerfiles may be built, and which files they read"},
	{"sandbox/engine", "internal/procid", "temporary directories are named after their process"},
	{"sandbox/gateway", "internal/peer", "whether a client that has closed its outbound half still reads"},
	{"shims", "internal/termsafe", "which characters of an author's text are shown"},
	{"shims", "spec", "renders what specs declare"},
	{"spec", "spec/internal/reserved", "the request fields that no connector may declare"},
	{"spec/action", "internal/durable", "an action file is there whole or not at all"},
	{"spec/action", "internal/regular", "an action file that is a link or a pipe is refused"},
	{"spec", "spec/condition", "when an operation asks for an approval"},
	{"spec", "spec/hosts", "the hosts of operations"},
	{"spec/action", "spec", "links actions with the connectors that they pin"},
	{"spec/catalog", "spec", "reads the connectors that it has"},
	{"spec", "spec/content", "what operations allow a body to ask for"},
	{"spec/graphql", "spec", "what a connector can declare"},
	{"spec/graphql", "spec/content", "the types of operations, and names"},
	{"spec/graphql", "spec/internal/foreign", "notes, texts and names of a description by others"},
	{"spec/graphql", "spec/scaffold", "makes what it writes"},
	{"spec/local", "spec", "makes connectors, and reads them back"},
	{"spec/local", "spec/scaffold", "the form of an operation in the file"},
	{"spec/openapi", "spec", "what a connector can declare"},
	{"spec/openapi", "spec/internal/foreign", "notes, texts and names of a description by others"},
	{"spec/openapi", "spec/scaffold", "makes what it writes"},
	{"spec/scaffold", "spec", "what it writes is what spec reads"},
	{"spec/signature", "internal/durable", "the keys survive a power cut"},
	{"spec/signature", "internal/filelock", "locks the publishers' keys"},
	{"spec/signature", "internal/format", "a file of keys has a format version"},
	{"spec/signature", "spec", "signs what spec names"},
	{"spec/source", "spec", "reads the names and versions of connectors"},
	{"spec/store", "internal/durable", "what is installed survives a power cut"},
	{"spec/store", "internal/format", "the store has a format version"},
	{"spec/store", "spec", "keeps connectors"},
	{"vault", "internal/durable", "a binding survives a power cut"},
	{"vault", "internal/format", "the vault and its bindings have a format version"},
	{"vault/keeper", "internal/unixsocket", "the socket on which it gives out the key"},
	{"vault/oauth", "spec", "how a connector declares its login"},
	{"vault/oauth", "vault", "keeps the grants"},
}

func TestEveryImportOfOursIsAllowed(t *testing.T) {
	used := make([]bool, len(arrows))
	missing := map[arrow]bool{}
	for _, f := range goSources(t) {
		if f.isTest() {
			continue
		}
		for _, imported := range f.imports(t) {
			to, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				continue
			}
			row := arrowFor(f.dir(), to)
			if row >= 0 {
				used[row] = true
			} else if absent := (arrow{from: f.dir(), to: to}); !missing[absent] {
				missing[absent] = true
				t.Errorf("%s: no row of arrows lets %s import %s; what would be the reason?", f.path, f.dir(), to)
			}
		}
	}
	for i, a := range arrows {
		if !used[i] {
			t.Errorf("arrows: no file needs the row %s → %s any more (%s): remove it", a.from, a.to, a.why)
		}
		if a.why == "" {
			t.Errorf("arrows: the row %s → %s has no reason", a.from, a.to)
		}
	}
}

// arrowFor returns the index of the row that allows the import of to by from, or -1.
func arrowFor(from, to string) int {
	for i, a := range arrows {
		if a.matches(from, to) {
			return i
		}
	}
	return -1
}

func TestArrowsRefuseWhatTheDesignForbids(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"spec", "vault"}, {"sandbox", "proxy"}, {"sandbox/gateway", "sandbox"}, {"proxy", "sandbox"}, {"audit", "spec"},
		{"ca", "vault"}, {"proxy/wire", "proxy"}, {"cmd/aileron/...", "e2e/harness"}, {"internal/format", "spec"},
		{"internal/session", "sandbox"}, {"internal/connectors", "cmd/aileron/internal/cli"},
		{"internal/changes", "internal/console"},
		{"ca", "vault"}, {"proxy/wire", "proxy"}, {"cmd/aileron", "e2e/harness"}, {"internal/format", "spec"},
		{"internal/session", "sandbox"}, {"proxy", "proxy/front"}, {"proxy", "proxy/api"}, {"proxy/api", "proxy/front"},
	} {
		if row := arrowFor(c.from, c.to); row >= 0 {
			t.Errorf("%s may import %s, by the row %+v", c.from, c.to, arrows[row])
		}
	}
}

// TestArrowsRunDown checks that no package imports one in whose directory it is, but for those that
// docs/architecture.md names: what is inside is what the outer one is made of.
func TestArrowsRunDown(t *testing.T) {
	up := map[string]string{
		"audit/export":  "audit",      // it writes the rows of a log
		"audit/rebuild": "audit",      // it opens the log that it made
		"proxy/api":     "proxy",      // it stands before the plane
		"proxy/front":   "proxy",      // it stands before the plane
		"proxy/wire/h2": "proxy/wire", // heads and bodies are judged by the same rules in both versions
		"spec/action":   "spec",       // it calls what spec parses
		"spec/catalog":  "spec",       // it embeds what spec parses
		"spec/graphql":  "spec",       // it makes what spec parses
		"spec/local":    "spec",       // it writes what spec parses
		"spec/openapi":  "spec",       // it makes what spec parses
		"spec/scaffold": "spec",       // it writes what spec parses
		"spec/source":   "spec",       // it fetches what spec names
		"spec/store":    "spec",       // it stores what spec parses
		"vault/oauth":   "vault",      // it renews what the vault keeps

		"spec/signature": "spec", // it signs what spec parses
	}
	for _, a := range arrows {
		if strings.HasPrefix(a.from, a.to+"/") && up[a.from] != a.to {
			t.Errorf("%s imports %s, which it is a part of (%s)", a.from, a.to, a.why)
		}
	}
}

func TestAnArrowStandsForItsTree(t *testing.T) {
	for _, c := range []struct {
		pattern, pkg string
		want         bool
	}{
		{"e2e/...", "e2e", true},
		{"e2e/...", "e2e/harness", true},
		{"e2e/...", "e2e2", false},
		{"proxy", "proxy/wire", false},
		{"*", "vault", true},
	} {
		if got := inTree(c.pattern, c.pkg); got != c.want {
			t.Errorf("inTree(%q, %q) = %v, want %v", c.pattern, c.pkg, got, c.want)
		}
	}
}
