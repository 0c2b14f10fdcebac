package auditschema

import "github.com/ALRubinger/aileron/audit"

// budgetShapes returns the shape of the row about a limit.
func budgetShapes() map[audit.Event]shape {
	return map[audit.Event]shape{
		audit.EventBudgetReached: {what: "The limit, and what is used of it.", fields: object{
			"meter":   text("The name of the meter."),
			"used":    atLeast(1, "What the session has used."),
			"limit":   atLeast(1, "The most that it may use."),
			"percent": atLeast(80, "How much of the limit is reached: 80 or 100."),
		}, required: []string{"meter", "used", "limit", "percent"}},
	}
}
