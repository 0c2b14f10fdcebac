package agents_test

import (
	"fmt"

	"github.com/ALRubinger/aileron/sandbox/agents"
)

func ExampleFind() {
	agent, ok := agents.Find("opencode")
	if !ok {
		return
	}
	fmt.Println("runs", agent.Commands[0])
	fmt.Println("needs one of the connectors", agent.Connectors)
	// Output:
	// runs opencode
	// needs one of the connectors [anthropic openai gemini openrouter local-openai]
}

func ExampleNames() {
	fmt.Println(agents.Names())
	// Output: [claude codex goose opencode pi]
}
