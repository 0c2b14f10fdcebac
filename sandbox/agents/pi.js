// Tells Pi of the session's operations. A version without MCP has no such function.
export default function (pi) {
	if (typeof pi.registerMcpServer === "function") {
		pi.registerMcpServer("aileron", { command: {program}, args: ["mcp"], exposure: "direct" });
	}
}
