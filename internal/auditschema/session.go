package auditschema

import "github.com/ALRubinger/aileron/audit"

const (
	sum         = "^sha256:[0-9a-f]{64}$"
	fingerprint = "^[0-9a-f]{64}$"
	keyID       = "^[0-9A-F]{16}$"
)

// sessionShapes returns the shapes of sessions and sandboxes.
func sessionShapes() map[audit.Event]shape {
	agent := text("The agent or command.")
	mode := text("podman, docker, native, off, proxy or serve; auto if the session ended before an engine was found.")
	return map[audit.Event]shape{
		audit.EventSessionStarted: {what: "What was in force. A field that does not apply is absent.",
			fields:   started(agent, mode),
			required: []string{"agent", "mode", "sealed", "egress", "grants_total", "grants_sha256"}},
		audit.EventSessionEnded: {what: "How the session ended.", reasons: []string{"", "unclean"}, fields: object{
			"agent": agent, "mode": mode,
			"exit_code": object{"type": "integer", "description": "The exit code of the command."},
			"cause":     text("Why it ended."),
			"seconds":   atLeast(0, "How long it lasted."),
			"host_files": list(object{"type": "object", "properties": object{"path": text("Relative to the project."),
				"before": text("The SHA-256 before; empty: there was no file."), "after": text("And after.")},
				"required": []string{"path", "before", "after"}, "additionalProperties": false},
				"Files of the project that the command changed and the host would run."),
			"host_files_changed": atLeast(1, "The number of all of them."),
		}, required: []string{"cause"}},
		audit.EventSessionGrantsChanged: {what: "What changed under a running session.",
			reasons: []string{"", "bindings_unclear", "connectors_conflict"}, fields: changed(),
			required: []string{"changes", "grants_total", "grants_sha256"}},
		audit.EventSandboxDisabled: {what: "Why a sandbox was not mediated, or not started.", decisions: []string{"disabled"},
			reasons: []string{"user_opt_out", "preflight_failed", "unsupported_sandbox_mode"},
			fields:  object{"agent": agent, "mode": mode, "cause": text("In words.")}, required: []string{"cause"}},
		audit.EventSandboxPort: {what: "The connection.", fields: object{
			"host_port": between(1, 65535, "The port of this host."), "port": between(1, 65535, "The port of the sandbox."),
			"client": text("The address of the client."),
		}, required: []string{"host_port", "port", "client"}},
	}
}

// started returns the fields of session.started.
func started(agent, mode object) object {
	fields := object{
		"agent": agent, "mode": mode,
		"pid":            atLeast(1, "The process of the session."),
		"engine_version": text("The version of the container engine."),
		"aileron":        text("The version of aileron."),
		"image":          text("The image as it was asked for."),
		"image_id":       text("What that stood for."),
		"egress":         oneOf("What became of requests that no connector names.", "deny", "passthrough"),
		"sandbox_proxy":  oneOf("--sandbox-proxy.", "on", "auto", "off"),
		"sealed":         object{"type": "boolean", "description": "Whether mediation was enforced, or by convention."},
		"read_only":      trueOnly("The command could not change the image's files."),
		"protect":        trueOnly("Nor the files of the project that the host would run."),
		"keep":           trueOnly("The state of the sandbox outlives it."),
		"unattended":     trueOnly("The agent used its tools without asking."),
		"learn":          trueOnly("The session noted what requests are made of, for aileron learn."),
		"detached":       trueOnly("The command ran without a terminal of a person."),
		"capture":        text("The file of --capture."),
		"ship":           text("Where sessions of the home ship the log: the kind, the host and the name."),
		"otlp":           text("Where the rows were exported to: the scheme and the host of each collector."),
		"upstream_ca":    text("The file of --upstream-ca."),
		"upstream_proxy": text("The HOST:PORT of --upstream-proxy."),
		"project_file":   text("The SHA-256 of the project's file."),
		"grants_total":   atLeast(0, "The number of all grants."),
		"grants_sha256":  matching(sum, "Their hash."),
		"grants":         list(grant(), "The connectors in force, the first 64."),
		"actions":        list(actionFile(), "The actions that can be run, the first 64."),
		"actions_total":  atLeast(1, "The number of all actions."),
	}
	for name, what := range map[string]string{
		"connectors": "The connectors of --connector.", "allow": "The hosts of --allow.",
		"approve": "The requests of --approve.",
		"budget":  "What the session may use up, as NAME=AMOUNT.", "mounts": "The mounts.",
		"env": "The names of variables.", "ports": "The published ports.", "tunnel": "Hosts that are not decrypted.",
		"resolve":        "Upstreams at an address of the user's, as HOST:PORT:ADDR.",
		"allow_ranges":   "Special addresses that could be dialled.",
		"no_proxy":       "The hosts that were reached without the upstream proxy.",
		"project_widens": "What a person agreed to in the project's file.",
	} {
		fields[name] = list(text(""), what)
		fields[name+"_total"] = atLeast(65, "The number of all, if "+name+" has not all.")
	}
	return fields
}

// changed returns the fields of session.grants_changed.
func changed() object {
	fields := object{
		"changes": list(oneOf("", "installed", "removed", "replaced", "bound", "unbound", "rebound",
			"action_added", "action_removed", "not_used"), "What happened."),
		"not_used": list(text(""), "Installed connectors, as FQN@VERSION, that do not fit those in force."),
		"rebound":  list(text(""), "Bindings that got another secret."),
		"added":    list(grant(), "What is granted now."), "removed": list(grant(), "What is granted no more."),
		"grants_total":    atLeast(0, "The number of all grants after the change."),
		"grants_sha256":   matching(sum, "Their hash."),
		"actions_added":   list(actionFile(), "The actions that can be run now."),
		"actions_removed": list(actionFile(), "The actions that cannot be run any more."),
	}
	for _, name := range []string{"added", "removed", "rebound", "actions_added", "actions_removed", "not_used"} {
		fields[name+"_total"] = atLeast(1, "The number of all.")
	}
	return fields
}

// actionFile returns the schema of an action.
func actionFile() object {
	return object{"type": "object", "properties": object{
		"name": text("Its name."), "version": text("Its version."), "hash": matching(sum, "That of its file."),
	}, "required": []string{"name", "version", "hash"}, "additionalProperties": false}
}

// grant returns the schema of a connector in force.
func grant() object {
	return object{"type": "object", "properties": object{
		"connector": text("Its FQN."), "version": text("Its version."),
		"hash": matching(sum, "That of its content."), "binding": text("The name of the binding that is used."),
	}, "required": []string{"connector", "version"}, "additionalProperties": false}
}
