// Package websocket relays WebSocket frames (RFC 6455) between an untrusted client and an upstream whose messages
// must be redacted.
//
// [Relay.Run] relays an upgraded connection until it ends; [Relay.End] ends it:
//
//	r := &websocket.Relay{Client: client, Upstream: upstream, NewScanner: scanner}
//	err := r.Run()
//
// No byte is passed on as it came: every frame is read, validated and written anew. Frames of the client get a new
// mask, so that the client does not choose the bytes on the upstream's wire (RFC 6455 section 10.3). Messages of the
// upstream are redacted across their frames; a hit is overwritten, so lengths stay. No extension is ever negotiated:
// compressed messages could not be searched.
package websocket
