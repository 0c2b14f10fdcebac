package main

import (
	_ "filippo.io/age"
	_ "github.com/BurntSushi/toml"
	_ "github.com/creack/pty"
	_ "github.com/docker/docker/client"
	_ "github.com/elazarl/goproxy"
	_ "github.com/google/martian/v3/fifo"
	_ "github.com/google/martian/v3/har"
	_ "github.com/google/martian/v3/header"
	_ "github.com/google/nftables"
	_ "github.com/miekg/dns"
	_ "github.com/oklog/ulid/v2"
	_ "github.com/tidwall/gjson"
	_ "github.com/vishvananda/netlink"
	_ "github.com/zalando/go-keyring"
	_ "golang.org/x/mod/semver"
	_ "golang.org/x/net/http2"
	_ "golang.org/x/sync/singleflight"
	_ "golang.org/x/sys/unix"
	_ "modernc.org/sqlite"
	_ "software.sslmate.com/src/go-pkcs12"
)
