package agents

// Endpoint is where an agent on this host sends the requests to one provider of models, if it takes that from the
// environment. In a sandbox no agent needs one: what it sends arrives, whatever client it has.
type Endpoint struct {
	Variable string // has the URL

	Host string // of the provider
	Base string // of the paths below its URL; "" where the agent adds that itself
}

// The providers as their own libraries take them.
var (
	anthropicLibrary = Endpoint{Variable: "ANTHROPIC_BASE_URL", Host: "api.anthropic.com"}
	// The AI SDK has the version in the URL.
	anthropicAISDK = Endpoint{Variable: "ANTHROPIC_BASE_URL", Host: "api.anthropic.com", Base: "/v1"}
	openaiAISDK    = Endpoint{Variable: "OPENAI_BASE_URL", Host: "api.openai.com", Base: "/v1"}
)
