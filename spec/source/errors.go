package source

import (
	"fmt"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// Kind is why a connector or a list of versions could not be fetched.
type Kind int

// The kinds of errors.
const (
	Unreachable   Kind = iota // no connection, or no response
	NotFound                  // there is no such version, or no such repository
	Refused                   // a status that repeating the request does not change
	Unavailable               // a status of a source that is overloaded or broken
	TooSlow                   // no progress within the idle time-out
	TooLarge                  // more bytes than a connector may have
	Torn                      // the response ended early
	NotAllowed                // a redirect that must not be followed
	NotAnArchive              // a web page, or another response that is not what was asked for
	UnknownScheme             // there is no such source
)

// reasons are the class and the reason of each kind in the error object of --json.
var reasons = map[Kind][2]string{
	Unreachable:   {"network_error", "source_unreachable"},
	NotFound:      {"invalid_request", "not_found"},
	Refused:       {"external_api_error", "source_refused"},
	Unavailable:   {"external_api_error", "source_unavailable"},
	TooSlow:       {"timeout", "source_too_slow"},
	TooLarge:      {"resource_limit_exceeded", "source_too_large"},
	Torn:          {"network_error", "source_truncated"},
	NotAllowed:    {"network_error", "redirect_not_allowed"},
	NotAnArchive:  {"external_api_error", "source_not_an_archive"},
	UnknownScheme: {"invalid_request", "source_unknown"},
}

// Error is returned for what could not be fetched. Its text never has the query of
// a URL, which may hold a signature.
type Error struct {
	What   string // what was fetched, for people
	Host   string // "" if no request was sent
	Kind   Kind
	Status int    // of the response, if there was one
	Detail string // a sentence about the cause

	// RetryAfter is how long the source asks to wait; 0: it does not say.
	RetryAfter time.Duration
	// Versions are those that exist, highest first, where Kind is NotFound.
	Versions []string

	Err error
}

// Error implements error.
func (e *Error) Error() string {
	text := "fetch " + e.What
	if e.Host != "" {
		text += " from " + e.Host
	}
	text += ": " + e.Detail
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorClass and ErrorReason return those in the error object of --json.
func (e *Error) ErrorClass() string  { return reasons[e.Kind][0] }
func (e *Error) ErrorReason() string { return reasons[e.Kind][1] }

// maxListed is how many versions an error lists.
const maxListed = 12

// withHint returns e with a hint about what to do.
func (e *Error) withHint() error {
	switch e.Kind {
	case NotFound:
		if len(e.Versions) > 0 {
			text := strings.Join(e.Versions[:min(len(e.Versions), maxListed)], ", ")
			if more := len(e.Versions) - maxListed; more > 0 {
				text += fmt.Sprintf(" and %d older ones", more)
			}
			return hint.New(e, "the versions that exist: %s", text)
		}
		return hint.New(e, "check the name and the version; for a repository that is not public pass --private")
	case Unavailable:
		if e.RetryAfter > 0 {
			return hint.New(e, "try again in %v, or install it from a file", e.RetryAfter)
		}
		return hint.New(e, "try again later, or install it from a file")
	case Refused:
		return hint.New(e, "for a repository that is not public pass --private, or install it from a file")
	case TooSlow:
		return hint.New(e, "try again, or raise idle_timeout below [sources] in config.toml")
	case Torn:
		return hint.New(e, "nothing was installed; try again")
	case NotAllowed, NotAnArchive, TooLarge:
		return hint.New(e, "nothing was installed; tell the publisher, or install it from a file")
	case Unreachable:
		return hint.New(e, "check the network; --resolve, --upstream-ca and --upstream-proxy change how sources are reached")
	}
	return e
}

// noHub is the error of a hub:// name where no hub is configured.
func noHub(fqn spec.FQN) error {
	e := &Error{What: string(fqn), Kind: UnknownScheme, Detail: "no hub is configured"}
	return hint.New(e, `name it in config.toml: [sources] hub = "https://HOST"`)
}
