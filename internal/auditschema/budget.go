package auditschema

import "github.com/ALRubinger/aileron/audit"

// budgetShapes returns the shape of the row about a limit.
func budgetShapes() map[audit.Event]shape {
	return map[audit.Event]shape{
		audit.EventBudgetReached: {what: "The limit, and what is used of it.", fields: object{
			"budget": oneOf("Whose limit: the session's, that of a day, or that of the credential in binding, in a day.",
				"session", "day", "binding"),
			"meter":   text("The name of the meter."),
			"used":    atLeast(1, "What was used."),
			"limit":   atLeast(1, "The most that may be used."),
			"percent": atLeast(80, "How much of the limit is reached: 80 or 100."),
		}, required: []string{"budget", "meter", "used", "limit", "percent"}},
	}
}
