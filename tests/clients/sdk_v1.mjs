// The official TypeScript SDK, v1 (legacy era), over `toolgate connect`. usage: sdk_v1.mjs TOOLGATE SOCKET
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { check, end, play, told } from './dialogue.mjs';

const [toolgate, socket] = process.argv.slice(2);
const client = new Client({ name: 'sdk-v1', version: '1' });
await client.connect(new StdioClientTransport({ command: toolgate, args: ['connect', socket, '--session', 'auto'] }));
check('toolgate answers', client.getServerVersion().name === 'toolgate', client.getServerVersion());
await client.ping();

await play({
  list: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: async (name, args) => told(await client.callTool({ name, arguments: args })),
});
await client.close();
end();
