package spec_test

import (
	"fmt"
	"log"

	"github.com/ALRubinger/aileron/spec"
)

const manifest = `
[connector]
name = "github://acme/tracker"
version = "1.2.0"

[capabilities.network]
hosts = ["api.tracker.example"]

[capabilities.credential]
kind = "api_key"
scope = "Read issues"

[provides]
intents = ["read_issues"]
`

const operations = `{
"schema_version": "aileron.connector.v1",
"connector": {"fqn": "github://acme/tracker", "version": "1.2.0"},
"tools": [{"name": "tracker", "operations": [
  {"name": "issues.get", "method": "GET", "path": "/v1/issues/{id}", "hosts": ["api.tracker.example"],
   "credential": {"kind": "api_key", "inject": {"name": "X-Api-Key"}}}]}]}`

func Example() {
	connector, err := spec.Load([]byte(manifest), []byte(operations))
	if err != nil {
		log.Fatal(err)
	}
	index, err := spec.NewIndex([]*spec.Connector{connector})
	if err != nil {
		log.Fatal(err)
	}
	request := spec.Target{
		Scheme: "https", Host: "api.tracker.example", Port: 443, Method: "GET", Path: "/v1/issues/7",
	}
	match, denied := index.Match(request)
	if denied != nil {
		log.Fatal(denied)
	}
	credential := match.Operation.Injection
	fmt.Println(match.Operation)
	fmt.Printf("%s in %s %s\n", credential.Kind, credential.In, credential.Name)

	request.Method = "DELETE"
	_, denied = index.Match(request)
	fmt.Println(denied.Reason, denied.Granted)
	// Output:
	// github://acme/tracker tracker issues.get
	// api_key in header X-Api-Key
	// operation_not_matched [operation:GET api.tracker.example/v1/issues/{id}]
}

// A mistake is reported with its file and place, and all of them at once.
func ExampleDiagnostics() {
	_, err := spec.Load([]byte(manifest), []byte(`{
"schema_version": "aileron.connector.v1",
"connector": {"fqn": "github://acme/tracker", "version": "latest"},
"tools": [{"name": "tracker", "operations": [
  {"name": "issues.get", "method": "PURGE", "path": "/v1/issues/{id}", "hosts": ["127.0.0.1"]}]}]}`))
	for _, d := range spec.Diagnostics(err) {
		fmt.Println(d)
	}
	// Output:
	// aileron.connector.v1.json: connector.version: "latest" is not a MAJOR.MINOR.PATCH version
	// aileron.connector.v1.json: tools[0].operations[0].method: "PURGE" is not in the IANA HTTP Method Registry
	// aileron.connector.v1.json: tools[0].operations[0].hosts[0]: "127.0.0.1" is an address; name the host
}

func ExampleParseTemplate() {
	template, err := spec.ParseTemplate("/v1/projects/{project}/files/{path...}")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(template.Has("project"))
	fmt.Println(template.Replace("/v1/projects/a/files/b/c", "project", "x"))
	fmt.Println(template.Replace("/v1/projects/../files/b", "project", "x"))
	// Output:
	// true
	// /v1/projects/x/files/b/c true
	//  false
}
