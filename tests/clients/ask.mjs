// The official TypeScript SDKs, v1 and v2 (of both eras), with a handler for elicitation, over `toolgate connect` and over
// the bare socket: a policy's question reaches the user, and the user's answer the call. Prints TAP.
// usage: ask.mjs TOOLGATE SOCKET, of a daemon with the policy `pay` (run.lua)
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { check, end, told } from './dialogue.mjs';

const [toolgate, socket] = process.argv.slice(2);
const over = { command: toolgate, args: ['connect', socket] };
const capabilities = { elicitation: { form: {} } };
let amount = 500;

// MCP's stdio framing over a socket.
class SocketTransport {
  async start() {
    this.stream = connect(socket);
    createInterface({ input: this.stream }).on('line', (line) => this.onmessage?.(JSON.parse(line)));
    this.stream.on('close', () => this.onclose?.());
    await new Promise((resolve, reject) => this.stream.once('connect', resolve).once('error', reject));
  }

  async send(message) { this.stream.write(`${JSON.stringify(message)}\n`); }

  async close() { this.stream.destroy(); }
}

async function answer(name, client, listen, transport) {
  const asked = [];
  let reply;
  listen(async (request) => {
    asked.push(request.params);
    return reply;
  });
  await client.connect(transport);
  const pays = async () => told(await client.callTool({ name: 'pay', arguments: { amount: amount++ } }));
  reply = { action: 'accept', content: { answer: 'pay' } };
  const paid = await pays();
  check(`${name}: the question reaches the user, and the first choice runs the call`,
    !paid.isError && paid.text.includes('paid') && asked.length === 1, { paid, asked });
  check(`${name}: as one property with the choices`,
    JSON.stringify(asked[0]?.requestedSchema?.properties?.answer?.enum) === '["pay","keep"]', asked[0]);
  reply = { action: 'accept', content: { answer: 'keep' } };
  const kept = await pays();
  check(`${name}: another choice declines it`, kept.isError && kept.text.includes('declined'), kept);
  reply = { action: 'decline' };
  const declined = await pays();
  check(`${name}: so does a user who declines`, declined.isError && declined.text.includes('declined'), declined);
  await client.close();
}

for (const [way, transport] of [['connect', () => new StdioV1(over)], ['socket', () => new SocketTransport()]]) {
  const v1 = new ClientV1({ name: 'sdk-v1', version: '1' }, { capabilities });
  await answer(`SDK v1, ${way}`, v1, (handler) => v1.setRequestHandler(ElicitRequestSchema, handler), transport());
}
for (const mode of ['legacy', { pin: '2026-07-28' }])
  for (const [way, transport] of [['connect', () => new StdioV2(over)], ['socket', () => new SocketTransport()]]) {
    const v2 = new ClientV2({ name: 'sdk-v2', version: '1' }, { capabilities, versionNegotiation: { mode } });
    await answer(`SDK v2, ${mode === 'legacy' ? mode : 'modern'}, ${way}`, v2,
      (handler) => v2.setRequestHandler('elicitation/create', handler), transport());
  }
end();
