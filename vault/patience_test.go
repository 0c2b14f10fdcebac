package vault

import "time"

// On a busy machine, writers that take their turns may together take longer than one that hangs is waited for.
func init() { writersWait = 5 * time.Minute }
