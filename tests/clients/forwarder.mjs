// A minimal gateway with the official SDK: it forwards every call unchecked. A peer of tests/bench.
//   node forwarder.mjs COMMAND [ARGUMENT…]
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [command, ...args] = process.argv.slice(2);
const upstream = new Client({ name: "forwarder", version: "1" });
await upstream.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
const server = new Server({ name: "forwarder", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, (request) => upstream.listTools(request.params));
server.setRequestHandler(CallToolRequestSchema, (request) => upstream.callTool(request.params));
await server.connect(new StdioServerTransport());
