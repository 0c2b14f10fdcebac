package proxy

import "github.com/ALRubinger/aileron/internal/hostport"

// Authority is the one host and port of an exchange. It is made once, from
// the request line that opened the way (CONNECT or an absolute target), and
// is from then on the only input to policy, name resolution, dialling, SNI,
// certificate verification, the Host header, the choice of a credential and
// the audit row. Everything else that claims to name a host (SNI, Host,
// :authority) must agree with it or the request is denied.
type Authority = hostport.Authority
