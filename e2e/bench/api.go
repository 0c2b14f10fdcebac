package main

import (
	"net/http"
	"strconv"
)

// requestFields are what a client of an API sends with every request. placeholder stands for the credential, as in
// the environment of an agent.
var requestFields = [][2]string{
	{"User-Agent", "bench/1.0 (linux; x64) api-client/9.4"},
	{"Accept", "application/vnd.bench+json"},
	{"Accept-Encoding", "gzip, deflate"},
	{"Authorization", "Bearer " + placeholder},
	{"X-Bench-Api-Version", "2022-11-28"},
}

// item is a small response of an API: one issue.
var item = []byte(`{"id":2853194617,"node_id":"I_kwDOBkfLjM6qEQ85","number":4318,"url":"https://` + apiHost +
	`/v1/repos/acme/widgets/issues/4318","html_url":"https://` + apiHost + `/acme/widgets/issues/4318",` +
	`"title":"The cache is stale after a rename","state":"open","locked":false,"comments":3,` +
	`"user":{"login":"octavia","id":583231,"node_id":"MDQ6VXNlcjU4MzIzMQ==","avatar_url":"https://` + apiHost +
	`/u/583231?v=4","type":"User","site_admin":false},"labels":[{"id":208045946,"name":"bug","color":"f29513",` +
	`"default":true},{"id":208045947,"name":"cache","color":"0e8a16","default":false}],"assignees":[],` +
	`"created_at":"2025-02-14T09:31:07Z","updated_at":"2025-02-17T16:20:44Z","closed_at":null,` +
	`"author_association":"CONTRIBUTOR","body":"Steps:\n\n1. ` + "`git mv a b`" +
	`\n2. request \u003chttps://` + apiHost + `/v1/tree?ref=main&recursive=1\u003e\n\nThe old name is still in it. ` +
	`Seen at 7fd1a60b01f91b314f59955a4e4d4e80d8edf11d.","reactions":{"total_count":2,"+1":2}}`)

// itemHead is the head of a small response: the twenty fields that a code host's API sends, with Date, which the
// origin's server adds. All of them have to pass a proxy unchanged.
var itemHead = http.Header{
	"Access-Control-Allow-Origin": {"*"},
	"Access-Control-Expose-Headers": {"ETag, Link, Location, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, " +
		"X-RateLimit-Used"},
	"Cache-Control":             {"private, max-age=60, s-maxage=60"},
	"Content-Length":            {strconv.Itoa(len(item))},
	"Content-Security-Policy":   {"default-src 'none'"},
	"Content-Type":              {"application/json; charset=utf-8"},
	"Etag":                      {`W/"0f6a5b7a7b0f6dd9f2f9b2c4d8d1d6d5ce1b2f0a9c1f53ab1f2e6a37ef1c9d41"`},
	"Last-Modified":             {"Mon, 17 Feb 2025 16:20:44 GMT"},
	"Referrer-Policy":           {"origin-when-cross-origin, strict-origin-when-cross-origin"},
	"Server":                    {"bench"},
	"Strict-Transport-Security": {"max-age=31536000; includeSubdomains; preload"},
	"Vary":                      {"Accept, Authorization, Cookie, Accept-Encoding"},
	"X-Content-Type-Options":    {"nosniff"},
	"X-Frame-Options":           {"deny"},
	"X-Ratelimit-Limit":         {"5000"},
	"X-Ratelimit-Remaining":     {"4987"},
	"X-Ratelimit-Reset":         {"1739812844"},
	"X-Ratelimit-Used":          {"13"},
	"X-Request-Id":              {"E4C2:1F3A7B:2B9C1D5:2D0F8A1:67B36AEC"},
}
