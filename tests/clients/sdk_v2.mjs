// The official TypeScript SDK, v2, which probes for the modern era, over `toolgate connect`.
// usage: sdk_v2.mjs TOOLGATE SOCKET
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { check, end, play, told } from './dialogue.mjs';

const [toolgate, socket] = process.argv.slice(2);
for (const mode of ['auto', { pin: '2026-07-28' }, 'legacy']) {
  const named = typeof mode === 'string' ? mode : 'pinned';
  const client = new Client({ name: 'sdk-v2', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport({ command: toolgate, args: ['connect', socket, '--session', 'auto'] }));
  const version = client.getNegotiatedProtocolVersion();
  check(`mode ${named}: the version is as requested`, version === (mode === 'legacy' ? '2025-11-25' : '2026-07-28'), version);

  await play({
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, args) => told(await client.callTool({ name, arguments: args })),
  });
  await client.close();
}
end();
