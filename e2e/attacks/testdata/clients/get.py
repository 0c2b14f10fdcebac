import base64, http.client, ssl, sys
proxy, token, ca = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
# What Python 3.13 sets by itself.
context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
host, port = proxy.split(":")
c = http.client.HTTPSConnection(host, int(port), context=context, timeout=30)
basic = base64.b64encode(b"s:" + token.encode()).decode()
c.set_tunnel("api.good.test", 443, {"Proxy-Authorization": "Basic " + basic})
c.request("GET", "/v1/items")
print(c.getresponse().read().decode(), end="")
