package auditschema

import (
	"maps"

	"github.com/ALRubinger/aileron/audit"
)

// logShapes returns the shapes of what the log records about itself and about installed connectors.
func logShapes() map[audit.Event]shape {
	renewal := object{"request_id": text("Ties the intent and the outcome together, a ULID.")}
	return map[audit.Event]shape{
		audit.EventBroken: {what: "What did not fit.", reasons: []string{"row_missing", "row_changed", "row_unreadable",
			"database_replaced", "head_missing", "head_changed", "witness_changed", "row_added",
			"head_unsigned", "journal_changed"},
			fields: object{
				"expected_seq":  atLeast(0, "The number of the row that the log had."),
				"expected_hash": text("Its hash. It is absent if it is not known."),
				"next_seq":      atLeast(2, "The number of the row that is not chained to it, if a session met one."),
				"found":         text("The hash that it has now, or what was found instead."),
				"found_seq":     atLeast(0, "The number of the newest row; 0: not known."),
				"also":          list(text(""), "What else did not fit."),
				"file":          text("The journal."),
				"offset":        atLeast(0, "The byte of it from which on it does not fit."),
				"kept_as":       text("The new name of that file."),
				"lost":          atLeast(0, "How many rows were lost with it."),
				"journal":       text("What was found of the journal at the same time."),
			}, required: []string{"found"}},
		audit.EventRecovered: {what: "What was recovered of a damaged database.", fields: object{
			"kept": text("The new name of the damaged file."), "rows": atLeast(0, "How many rows were copied."),
			"lost": atLeast(0, "How many were not."), "missing": list(text(""), "The numbers of these, as ranges."),
		}, required: []string{"kept", "rows", "lost"}},
		audit.EventCheckpoint: {what: "The signed head.", fields: object{
			"checkpoint": text("A signed note with the number and the hash of the row before."),
			"every":      atLeast(1000, "Behind each row whose number is a multiple of this, a signed head follows at once."),
		}, required: []string{"checkpoint"}},
		audit.EventPruned: {what: "The rows that were removed.", fields: object{
			"first_seq": atLeast(1, "The number of the first one."), "last_seq": atLeast(1, "And of the last one."),
			"rows":       atLeast(1, "How many they were."),
			"last_hash":  text("The hash of the last one, to which the first row that is left is chained."),
			"from":       text("The time of the first one."),
			"until":      text("The time of the last one."),
			"before":     text("The time before which rows were to be removed."),
			"checkpoint": text("A signed note with all of this."),
		}, required: []string{"first_seq", "last_seq", "rows", "last_hash", "from", "until", "before", "checkpoint"}},
		audit.EventBindingRefreshStarted: {what: "The renewal.", fields: renewal, required: []string{"request_id"}},
		audit.EventBindingRefreshed:      {what: "The renewal.", fields: renewal, required: []string{"request_id"}},
		audit.EventBindingRefreshFailed: {what: "Why a token was not renewed.", reasons: []string{"refresh_failed"},
			fields:   object{"request_id": renewal["request_id"], "error": text("In words.")},
			required: []string{"request_id", "error"}},
		audit.EventBindingUsed: {what: "The use of a credential by a command."},
		audit.EventConnectorVerifyFailed: {what: "What is wrong with the connector.",
			reasons: append([]string{"hash_mismatch", "connector_unreadable", "store_unreadable"}, refusedSignatures...),
			fields: object{"error": text("In words."), "hash": matching(sum, "The hash of its content."),
				"key_id": matching(keyID, "The id of the key that its signature names.")},

			required: []string{"error"}},
	}
}

// refusedSignatures are the reasons of a signature that is refused, those of package signature.
var refusedSignatures = []string{"signature_missing", "signature_unexpected", "signature_not_a_file",
	"signature_too_large", "signature_truncated", "signature_malformed", "signature_mismatch", "signature_replayed",
	"signature_comment", "signature_key_unknown", "signature_key_mismatch", "signature_too_many", "publisher_key_changed",
	"publisher_key_revoked", "publisher_key_retired", "publisher_trust_invalid", "publisher_trust_replayed",
	"publisher_trust_too_long"}

// changeShapes returns the shapes of what commands change: the intent, the failure and the event of the act.
func changeShapes() map[audit.Event]shape {
	all := map[audit.Event]shape{}
	for _, change := range audit.Changes() {
		fields := object{
			"request_id":  text("Ties the intent and the outcome together, a ULID."),
			"interrupted": trueOnly("The command was killed; the next one recorded the outcome."),
		}
		switch change {
		case audit.ChangeConnectorInstall, audit.ChangeConnectorRemove:
			fields["hash"] = matching(sum, "The hash of the connector's content.")
			if change == audit.ChangeConnectorInstall {
				fields["signature"] = oneOf("What is known of its publisher.", "verified", "new_key", "next_key", "unsigned",
					"part_of_aileron")
				fields["key_id"] = matching(keyID, "The id of the key that signed it.")
			}
		case audit.ChangeActionAdd, audit.ChangeActionRemove:
			fields["action"] = text("The name of the action.")
			fields["action_version"] = text("Its version; none: its file is not valid.")
			fields["hash"] = matching(sum, "The hash of its file.")
		case audit.ChangePublisherKeyAdd, audit.ChangePublisherKeyRemove:
			fields["authority"] = text("The publisher, as in github://acme.")
			fields["key_id"] = matching(keyID, "The id of the key; none: all keys of the publisher.")
			if change == audit.ChangePublisherKeyAdd {
				fields["vouched_by"] = matching(keyID, "The id of the publisher's key that vouches for it, and that it replaces.")
			}
		case audit.ChangeCATrust, audit.ChangeCAUntrust:
			maps.Copy(fields, trust())
		case audit.ChangeVaultUnlock:
			fields["until"] = stamp("How long the vault stays unlocked.")
		}
		named := shape{what: "Fields of " + string(change) + ".", fields: fields, required: []string{"request_id"}}
		failed := named
		failed.anyReason = true
		all[change.Started()], all[change.Done()], all[change.Failed()] = named, named, failed
	}
	return all
}

// trust returns the fields of changes of the trust stores of this host.
func trust() object {
	return object{
		"sha256":        matching(fingerprint, "The fingerprint of the session's root."),
		"until":         stamp("The end of its validity."),
		"names":         list(text(""), "The hosts that it can vouch for, with the names below them; the first 64."),
		"names_total":   atLeast(65, "The number of all, if names has not all."),
		"stores":        list(text(""), "The stores, by kind and path: those of the intent, or that were changed."),
		"stores_failed": list(text(""), "The stores that could not be changed."),
	}
}
