// A server of MCP as a project may have one: it knows nothing of a proxy, a CA or a key.
import { existsSync } from "node:fs"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"

const server = new McpServer({ name: "mine", version: "1.0.0" })
server.registerTool("look_up", { description: "Looks something up", inputSchema: {} }, async () => {
  const where = existsSync("/etc/aileron/tools.txt") ? "inside the sandbox" : "outside"
  const res = await fetch("https://api.echo.example/echo-chunks")
  const denied = await fetch("https://api.echo.example/other")
  const text = `${where}: ${res.status}, ${denied.status}\n${await res.text()}`
  return { content: [{ type: "text", text }] }
})
await server.connect(new StdioServerTransport())
