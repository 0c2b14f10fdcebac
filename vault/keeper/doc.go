// Package keeper holds the key of an unlocked vault in a process of its user for a
// bounded time, as ssh-agent does, so that one passphrase serves many commands.
//
// A command that has the key starts a process that calls [Serve] with a [Key] in
// locked memory. Other commands call [Fetch] with the home of the vault:
//
//	key, err := keeper.Fetch(ctx, home)
//	if errors.Is(err, keeper.ErrNone) {
//		// ask for the passphrase
//	}
//
// [Ask] returns until when the key is held, and [End] ends the keeper.
//
// The keeper listens on a unix socket of mode 0600 in a directory that only its user
// may enter, and responds to processes of the same user only. A process in a PID
// namespace below the keeper's is refused: it is in a container. No sandbox has the
// directory, see [Dir]; these checks are for one that got it by mistake. Any other
// program of the user can ask for the key while it is held.
package keeper
