package main

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/vault"
)

func vaultStatus(a *app) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	bindings, err := v.Bindings()
	if errors.Is(err, vault.ErrNotInitialised) {
		err = nil
	}
	if err != nil && len(bindings) == 0 {
		return err
	}
	if a.json {
		status := map[string]any{"initialised": v.Initialised(), "locked": v.LockedForAll(), "bindings": len(bindings)}
		return errors.Join(a.printJSON(status), err)
	}
	state := "ready; its passphrase opens it"
	switch {
	case !v.Initialised():
		state = "not made yet; aileron vault init makes it"
	case v.LockedForAll():
		state = "locked for all sessions; aileron vault unlock opens it"
	}
	fmt.Fprintf(a.stdout, "vault     %s\nbindings  %d\n", state, len(bindings))
	return err
}
