package openapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

const swagger = `
swagger: "2.0"
info: {title: Shop, version: "1"}
host: api.shop.example
basePath: /v1
schemes: [http, https]
consumes: [application/json]
securityDefinitions:
  login: {type: oauth2, flow: accessCode, authorizationUrl: https://l.shop.example/auth,
    tokenUrl: https://l.shop.example/token, scopes: {read: r}}
  key: {type: basic}
security: [{login: [read]}]
parameters:
  Limit: {name: limit, in: query, type: integer, description: How many}
definitions:
  Order: {type: object, required: [item], properties: {item: {type: string}, count: {type: integer},
      id: {type: string, readOnly: true}}}
paths:
  /orders/{id}:
    parameters: [{name: id, in: path, required: true, type: string}, {$ref: '#/parameters/Limit'}]
    get:
      operationId: orders.get
      tags: [orders]
      summary: Read an order
      parameters:
        - {name: tags, in: query, type: array, items: {type: string}}
        - {name: ids, in: query, type: array, collectionFormat: multi, items: {type: integer}}
        - {name: old, in: query, type: array, collectionFormat: tsv, items: {type: string}}
        - {name: sort, in: query, type: string, enum: [a, b]}
      responses: {}
    put:
      operationId: orders.put
      tags: [orders]
      parameters: [{name: body, in: body, required: true, schema: {$ref: '#/definitions/Order'}}]
      responses: {}
    patch:
      operationId: orders.patch
      tags: [orders]
      consumes: [application/json-patch+json, application/merge-patch+json]
      parameters: [{name: body, in: body, schema: {type: object, properties: {count: {type: integer}}}}]
      responses: {}
  /files:
    post:
      operationId: files.create
      tags: [files]
      consumes: [multipart/form-data, application/x-www-form-urlencoded]
      parameters: [{name: file, in: formData, type: file, required: true, description: What to keep},
        {name: note, in: formData, type: string}]
      responses: {}
  /forms:
    post:
      operationId: forms.create
      tags: [forms]
      consumes: [application/x-www-form-urlencoded]
      parameters: [{name: to, in: formData, type: array, collectionFormat: csv, items: {type: string}, required: true}]
      responses: {}
`

const upgraded = `
openapi: 3.0.3
info: {title: Shop, version: "1"}
servers: [{url: https://api.shop.example/v1}]
components:
  securitySchemes:
    login: {type: oauth2, flows: {authorizationCode: {authorizationUrl: https://l.shop.example/auth,
      tokenUrl: https://l.shop.example/token, scopes: {read: r}}}}
    key: {type: http, scheme: basic}
  parameters:
    Limit: {name: limit, in: query, schema: {type: integer}, description: How many}
  schemas:
    Order: {type: object, required: [item], properties: {item: {type: string}, count: {type: integer},
      id: {type: string, readOnly: true}}}
security: [{login: [read]}]
paths:
  /orders/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}}
      - {$ref: '#/components/parameters/Limit'}
    get:
      operationId: orders.get
      tags: [orders]
      summary: Read an order
      parameters:
        - {name: tags, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: ids, in: query, schema: {type: array, items: {type: integer}}}
        - {name: old, in: query, style: tabDelimited, schema: {type: array, items: {type: string}}}
        - {name: sort, in: query, schema: {type: string, enum: [a, b]}}
      responses: {}
    put:
      operationId: orders.put
      tags: [orders]
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}
      responses: {}
    patch:
      operationId: orders.patch
      tags: [orders]
      requestBody: {content: {
        application/json-patch+json: {schema: {type: object, properties: {count: {type: integer}}}},
        application/merge-patch+json: {schema: {type: object, properties: {count: {type: integer}}}}}}
      responses: {}
  /files:
    post:
      operationId: files.create
      tags: [files]
      requestBody: {required: true, content: {multipart/form-data: {schema: {type: object, required: [file],
        properties: {file: {type: string, format: binary, description: What to keep}, note: {type: string}}}}}}
      responses: {}
  /forms:
    post:
      operationId: forms.create
      tags: [forms]
      requestBody: {required: true, content: {application/x-www-form-urlencoded: {schema: {type: object, required: [to],
        properties: {to: {type: array, items: {type: string}}}}, encoding: {to: {style: form, explode: false}}}}}
      responses: {}
`

// A document of Swagger 2 makes the connector that the same one of OpenAPI 3 makes.
func TestSwaggerIsReadAsOpenAPI(t *testing.T) {
	old, oldLeftOut := made(t, []byte(swagger), Options{})
	now, leftOut := made(t, []byte(upgraded), Options{})
	for _, name := range []string{spec.ManifestFile, spec.SpecFile} {
		got, want := must.Get(old.Files())(t)[name], must.Get(now.Files())(t)[name]
		if string(got) != string(want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
	if oldLeftOut != leftOut || len(old.Operations) != 5 || !strings.Contains(leftOut, "syntax of their own") {
		t.Errorf("left out:\n%s\nwant:\n%s", oldLeftOut, leftOut)
	}
}

// What a document of Swagger 2 has in odd places is an error or left out, and never a panic.
func TestOddSwagger(t *testing.T) {
	for _, rest := range []string{
		`"paths":[]`, `"paths":{"/a":[]}`, `"paths":{"/a":{"get":[],"post":"x"}}`, `"securityDefinitions":[],"paths":{}`,
		`"paths":{"/a":{"parameters":{},"get":{"parameters":"x"}}}`, `"servers":7,"components":7,"host":{}`,
		`"paths":{"/a":{"get":{"parameters":[7,null,{"in":"body"},{"in":"formData"},
			{"in":"query","name":"x","type":"array"}]}}}`,
		`"paths":{"/a":{"$ref":"#/paths/~1b"},"/b":{"$ref":"#/paths/~1a"}}`,
		`"paths":{"/a":{"post":{"consumes":"x","parameters":[{"in":"body","schema":{"$ref":"#/definitions/none"}}]}}}`,
		`"securityDefinitions":{"a":{"type":"oauth2"},"b":7},"paths":{"/a":{"get":{"security":[{"a":[]},{"b":[]}]}}}`,
	} {
		data := []byte(`{"swagger":"2.0","host":"api.t.example",` + rest + `}`)
		if !json.Valid(data) {
			t.Fatal(rest)
		}
		c, _, err := Connector(data, Options{FQN: "github://acme/t"})
		if err == nil {
			_, err = c.Files()
		}
		t.Logf("%s: %v", rest, err)
	}
}

// A connector of a document that names no host is compared with the one that it has.
func TestADocumentWithoutAHostIsCompared(t *testing.T) {
	data := []byte(strings.Replace(swagger, "host: api.shop.example\n", "", 1))
	made, _ := made(t, data, Options{Host: "api.other.example"})
	files := must.Get(made.Files())(t)
	c := must.Get(spec.Load(files[spec.ManifestFile], files[spec.SpecFile]))(t)
	got := must.Get(Compare(data, c, Options{}))(t)
	want := Comparison{Operations: Count{5, 5}, Parameters: Count{10, 9}, Bodies: Count{4, 4}}
	if got.Operations != want.Operations || got.Parameters != want.Parameters || got.Bodies != want.Bodies ||
		len(got.Missing) != 1 {
		t.Errorf("%+v", got)
	}
}
