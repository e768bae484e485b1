// The official TypeScript SDK over HTTP, through the bridge that docs/clients.md names, started as the page says.
// usage: over_http.mjs TOOLGATE SOCKET PAGE
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { check, end, play, told } from './dialogue.mjs';

const [toolgate, socket, page] = process.argv.slice(2);
const said = readFileSync(page, 'utf8').match(/^npx supergateway --stdio "(.*)" (.*) --port \d+$/m);
check('the page names the bridge', said !== null);
const [, stdio, options] = said;

const port = await new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});
const manifest = createRequire(import.meta.url).resolve('supergateway/package.json');
const bridge = spawn(process.execPath, [join(dirname(manifest), 'dist/index.js'), '--stdio',
  stdio.replace('toolgate connect', `${toolgate} connect ${socket}`), ...options.split(' '), '--port', `${port}`]);
await new Promise((resolve) => bridge.stdout.on('data', (text) => `${text}`.includes('Listening on port') && resolve()));

const client = new Client({ name: 'over-http', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));
check('toolgate answers', client.getServerVersion().name === 'toolgate', client.getServerVersion());
await play({
  list: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: async (name, args) => told(await client.callTool({ name, arguments: args })),
});
await client.close();
bridge.kill();
end();
