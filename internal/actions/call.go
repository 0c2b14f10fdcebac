package actions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
)

// Call runs an action through the API of a session, prints the response, and returns the exit code.
func Call(ctx context.Context, c *console.Console, asJSON bool, host *launch.HostSession, name string,
	args []byte) (int, error) {
	call, err := json.Marshal(map[string]any{"action": name, "args": json.RawMessage(args)})
	if err != nil {
		return 1, failure.Usagef("--args is no JSON object: %v", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, host.APIURL+"/actions/run", bytes.NewReader(call))
	if err != nil {
		return 1, err
	}
	r.Header.Set("Authorization", "Bearer "+host.Token())
	r.Header.Set("Accept", "application/vnd.aileron.shim.v1")
	if asJSON {
		r.Header.Set("Accept", "application/vnd.aileron.shim.v1+json")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy of the environment
	res, err := client.Do(r)
	if err != nil {
		return 1, fmt.Errorf("run the action %s: %w", name, err)
	}
	defer res.Body.Close()
	body := bufio.NewReader(res.Body)
	head, err := body.ReadString('\n')
	words := strings.Fields(head)
	if err != nil || len(words) != 4 {
		return 1, fmt.Errorf("run the action %s: the session's response has no first line", name)
	}
	code, err := strconv.Atoi(words[0])
	if err != nil {
		return 1, fmt.Errorf("run the action %s: the session's response has no exit code", name)
	}
	if words[3] == "denial" {
		return code, printDenial(c, asJSON, body)
	}
	out := c.Stdout
	if !launch.IsTerminal(c.Child.Stdout) {
		out = c.Child.Stdout // the bytes as they are
	}
	if _, err = io.Copy(out, body); err != nil {
		return 1, hint.New(fmt.Errorf("print the response: %w", err), "the request was sent and may have taken effect")
	}
	if code != 0 {
		c.Infof("aileron: the upstream responded with status %s", words[1])
	}
	return code, nil
}

// printDenial prints a denial: its message, or with --json its object, to stderr as other errors.
func printDenial(c *console.Console, asJSON bool, body *bufio.Reader) error {
	message, err := body.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the denial: %w", err)
	}
	if asJSON {
		_, err = io.Copy(c.Stderr, body)
		return err
	}
	c.Infof("%s", strings.TrimSpace(message))
	return nil
}
