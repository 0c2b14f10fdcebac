package cli

import "github.com/ALRubinger/aileron/internal/otlp"

// ExportTarget returns where the rows of a session are exported to, by the variables of OpenTelemetry. What they ask
// for and aileron cannot do is one warning: the session does not depend on it.
func (a *App) ExportTarget() otlp.Target {
	to, err := otlp.FromEnvironment(a.Getenv)
	if err != nil {
		a.Infof("aileron: warning: rows of the audit log are not exported as asked for: %v", err)
	}
	return to
}
