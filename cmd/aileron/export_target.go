package main

import "github.com/ALRubinger/aileron/internal/otlp"

// exportTarget returns where the rows of a session are exported to, by the variables of OpenTelemetry. What they ask
// for and aileron cannot do is one warning: the session does not depend on it.
func (a *app) exportTarget() otlp.Target {
	to, err := otlp.FromEnvironment(a.getenv)
	if err != nil {
		a.infof("aileron: warning: rows of the audit log are not exported as asked for: %v", err)
	}
	return to
}
