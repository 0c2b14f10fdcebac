package proxy

import (
	"errors"

	"github.com/ALRubinger/aileron/proxy/modify"
)

// stepReasons is the table of the reasons for which a step ends an exchange.
var stepReasons = map[modify.Kind]Reason{
	modify.QueryMalformed:     reasonMalformed,
	modify.NoPlace:            reasonCredential,
	modify.ContentCoding:      reasonEncoding,
	modify.Charset:            reasonCharset,
	modify.PartialContent:     reasonPartial,
	modify.AmbiguousFieldName: reasonFieldName,
	modify.Packed:             reasonPacked,
	modify.Switch:             reasonSwitch,
}

// denyStep returns the denial of an exchange that a step ended.
func denyStep(err error) *Denial {
	var failed *modify.Error
	if !errors.As(err, &failed) {
		return deny(reasonPanic, "a step of the exchange failed")
	}
	return deny(stepReasons[failed.Kind], "%s", failed.Message)
}

// cutReason returns why a body ended early: a step rejected what came, or the
// upstream broke off.
func cutReason(err error) Reason {
	var failed *modify.Error
	if errors.As(err, &failed) {
		return stepReasons[failed.Kind]
	}
	return reasonTruncated
}
