// Package detached is the terminal of a command at which no person has to sit.
//
// The process of a session calls [New], gives the [Terminal] to the command as its
// streams, and calls [Terminal.Open] when the session is open:
//
//	t := detached.New(terminal.Size{Height: 24, Width: 80})
//	defer t.End(detached.End{})
//	if err := t.Open(detached.Session{Home: home, ID: s.ID(), Dir: s.Dir(), Agent: agent}); err != nil {
//		return err
//	}
//
// Other processes of the user call [Attach] to connect a terminal of a person, one
// at a time: a later one takes the place of an earlier one. What the command writes
// is in files of the home too, as far as [MaxOutput] allows: [Output.Copy] reads
// it, while the session runs and afterwards. [Prune] removes it.
//
// The command is never held up for long: neither by a terminal that takes no output
// nor by a disk that is full. A socket of mode 0600 in the session's directory, which
// no sandbox has, is the only way in, and it is for processes of the same user that
// are in no container.
package detached
