package auditschema

import "github.com/ALRubinger/aileron/audit"

// approvalShapes returns the shapes of what becomes of requests that wait for a person.
func approvalShapes() map[audit.Event]shape {
	decided := func(what string) shape {
		return shape{what: what, fields: object{
			"approval_id":    text("The approval, a ULID."),
			"connector_hash": text("The hash of the connector's content."),
			"surface":        oneOf("Where it was decided.", "cli", "page", "decider"),
			"decider_reason": text("Why, in words of the decider: one line of at most 200 characters."),
			"for":            oneOf("How far the decision goes.", "once", "session", "always"),
			"waited_ms":      atLeast(0, "The milliseconds from the question to the decision."),
			"preview_sha256": matching("^[0-9a-f]{64}$", "The SHA-256 of the response of the service that was shown with it."),
			"revoked":        trueOnly("A decision that was in force was taken back."),
		}, required: []string{"approval_id", "surface"}}
	}
	return map[audit.Event]shape{
		audit.EventApprovalRequested: {what: "What is asked about.", fields: object{
			"approval_id":    text("The approval, a ULID."),
			"connector_hash": text("The hash of the connector's content."),
			"request_id":     text("The request that asked first: its outcome has the same."),
			"body_sha256":    matching("^[0-9a-f]{64}$", "The SHA-256 of the request's body."),
			"body_bytes":     atLeast(1, "The bytes of the body, where they are known."),
		}, required: []string{"approval_id", "request_id"}},
		audit.EventApprovalApproved: decided("What a person has approved."),
		audit.EventApprovalDenied:   decided("What a person has denied, or taken back."),
		audit.EventApprovalExpired: {what: "What was not decided, or not used.", fields: object{
			"approval_id":    text("The approval, a ULID."),
			"connector_hash": text("The hash of the connector's content."),
			"was":            oneOf("It was approved, and no request used that.", "approved"),
			"cause":          oneOf("Why it ended before its time.", "session_ended", "request_ended"),
		}, required: []string{"approval_id"}},
	}
}
