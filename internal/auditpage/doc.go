// Package auditpage serves a page on which a person reads the audit log with a browser. [Listen] opens the port,
// [Page.URL] returns the link to print, and [Page.Serve] serves it until its context ends or no page has been open for
// a while:
//
//	page, err := auditpage.Listen(ctx, auditpage.Options{Log: filepath.Join(home, "audit.db")})
//	if err != nil {
//		return err
//	}
//	fmt.Println(page.URL())
//	return page.Serve(ctx)
//
// It listens on a loopback address only, and it only reads. Every other program and every web site of this machine is
// refused:
//
//   - The link has a token in its fragment, which browsers neither send nor log. The page exchanges it, once, for a
//     cookie and a key. Each request for data needs both: cookies are not isolated by port (RFC 6265, section 8.5), so
//     another server on this address can get the cookie, but only this origin's page has the key.
//   - Host must be the listener's own address (DNS rebinding), Origin and Sec-Fetch-Site, if they are sent, this
//     origin's.
//   - The content security policy allows this origin's files and nothing else, no inline script or style. There is no
//     CORS header and no WebSocket.
//
// Whatever a row holds is sent as text, bounded, with control and formatting characters escaped as
// [github.com/ALRubinger/aileron/internal/termsafe] escapes them for a terminal. Neither the server nor the page ever
// holds the whole log: rows are read by ranges of their numbers.
package auditpage
