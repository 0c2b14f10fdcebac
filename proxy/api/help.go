package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/search"
)

// helpPath is the endpoint that a connector's command asks for the help that it does not have itself.
const helpPath = "/v1/connector-operations/help"

// lookup asks for what a tool has: see [shims.Lookup].
type lookup struct {
	Connector string   `json:"connector_fqn"`
	Tool      string   `json:"tool"`
	Command   string   `json:"command"` // the name that the tool's command has in the sandbox
	Words     []string `json:"words"`
}

// parseLookup reads a lookup. The name of the command is printed, so it has the form of one.
func parseLookup(body []byte) (in lookup, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil || dec.More() {
		return in, errors.New("it is not an object with connector_fqn, tool, command and words")
	}
	isOther := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("._:-", c)
	}
	if in.Command == "" || len(in.Command) > maxCommand || strings.ContainsFunc(in.Command, isOther) {
		return in, errors.New("command: it is not the name of a command")
	}
	if len(in.Words) > search.MaxWords {
		return in, fmt.Errorf("words: there are more than %d", search.MaxWords)
	}
	return in, nil
}

// maxCommand bounds the name of a command, in bytes.
const maxCommand = 100

// runHelp responds with a text for a person or an agent.
func (c *call) runHelp() (*http.Response, *proxy.Denial) {
	in, d := read(c, parseLookup)
	if d != nil {
		return nil, d
	}
	index := c.plane.Grants().Index
	for _, connector := range index.Connectors() {
		if string(connector.FQN) != in.Connector {
			continue
		}
		for _, t := range connector.Tools {
			if t.Name != in.Tool {
				continue
			}
			res, d := c.lookup(in, connector, t)
			if d != nil {
				return nil, c.reject(nil, nil, d)
			}
			return res, nil
		}
	}
	return nil, c.denyUnknown(index, spec.Invocation{Connector: in.Connector, Tool: in.Tool}, nil)
}

// lookup responds with the help, in its turn among all listings.
func (c *call) lookup(in lookup, of *spec.Connector, t spec.Tool) (*http.Response, *proxy.Denial) {
	leave, d := c.api.inTurn(c.r)
	if d != nil {
		return nil, d
	}
	defer leave()
	isEmpty := func(w string) bool { return strings.TrimSpace(w) == "" }
	text, err := shims.Lookup(c.r.Context(), in.Command, of, t, slices.DeleteFunc(in.Words, isEmpty))
	if err != nil {
		return nil, proxy.ReasonArguments.Deny("%v", err)
	}
	return c.text(text)
}

// text returns a response of plain text, in the form that the request asks for.
func (c *call) text(text []byte) (*http.Response, *proxy.Denial) {
	c.hold.Release()
	contentType := "text/plain; charset=utf-8"
	if c.form != "" {
		contentType, text = c.form, append(shimHeadOf(http.StatusOK, ""), text...)
	}
	body, ok := newListed(c.r, text)
	if !ok {
		return nil, proxy.DenyMemory()
	}
	res := shimResponseOf(c.r, contentType, "")
	res.Body, res.ContentLength = body, int64(len(text))
	res.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return res, nil
}
