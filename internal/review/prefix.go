package review

// The lengths of the prefixes by which lists name rows and sessions. The first ten characters of a ULID are its time
// in milliseconds. A session adds ten bits of chance to it, and a row, of which there are thousands a second, twenty.
const (
	shortSession = 12
	shortRow     = 14
)

// ShortRow returns a prefix of a row's id that is unambiguous except by chance. [audit.Log.Find] takes it.
func ShortRow(id string) string { return id[:min(len(id), shortRow)] }

// ShortSession returns a prefix of a session's id that is unambiguous except by chance.
func ShortSession(id string) string { return id[:min(len(id), shortSession)] }
