package main

// unrecorded returns the error with which aileron ends after a command that ended with code, where err is the error of
// closing its session. Rows that are not in the audit log turn a success into a failure; a failure of the command stays
// what it is.
func (a *app) unrecorded(code int, err error) error {
	switch {
	case err == nil && code == 0:
		return nil
	case err != nil && code == 0:
		return err
	case err != nil:
		_ = a.exitCode(err) // logs it; the code is the command's
	}
	return exitError{code}
}
