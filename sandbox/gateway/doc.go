// Package gateway is the only neighbour of a sandbox: the end of every packet
// that leaves it, and the only program that has both the sandbox's network
// namespace and the sockets of the proxy.
//
// Call [Run] as root in a network namespace that has nothing but loopback; the
// sandbox then joins that namespace. For the moment of its start the gateway may
// administrate it: it brings up the loopback device, routes everything to it and
// redirects every TCP connection and every DNS query to itself. Then it drops
// its user and all capabilities, on all threads, and only then serves:
//
//   - 127.0.0.1:3128, the proxy that clients are configured for. Its bytes are
//     relayed to the proxy's socket as they are.
//   - every other TCP connection, whatever its address and port. It becomes a
//     CONNECT on the proxy's socket, for the name that the client looked up.
//   - DNS. Each name gets an address of its own that leads nowhere; nothing is
//     ever forwarded, so a query carries nothing out.
//
// The gateway decides nothing and resolves nothing: it passes on what a client
// asks for, and the proxy decides. What is neither TCP nor DNS (UDP, QUIC, ICMP,
// IPv6) fails at once instead of timing out. When the gateway ends, the sandbox
// has no network at all.
//
// The package trusts nothing that comes from the sandbox: the table of names,
// the number of connections, every message and every wait are bounded.
package gateway
