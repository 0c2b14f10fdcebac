package main

import "github.com/spf13/cobra"

// commands is the command tree, in the order in which help shows it.
// Each command lives in a file of its own name.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newLaunchCommand(a),
		newSandboxCommand(a),
		newRunCommand(a),
		newProxyCommand(a),
		newConnectorCommand(a),
		newBindingCommand(a),
		newVaultCommand(a),
		newAuditCommand(a),
		newSpecCommand(a),
		newSessionCommand(a),
		newDemoCommand(a),
		newGatewayCommand(a),
	}
}
