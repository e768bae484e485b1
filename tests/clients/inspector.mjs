// The MCP Inspector's command line, one process per call, over `toolgate connect`. usage: inspector.mjs TOOLGATE SOCKET
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { end, play, told } from './dialogue.mjs';

const [toolgate, socket] = process.argv.slice(2);
const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json');
const inspector = join(dirname(manifest), 'clients/launcher/build/index.js');
const session = `inspector-${process.pid}`;

// The inspector exits with an error if the tool fails; its output is the result in any case. {error} on stderr is an
// error of the inspector itself.
function inspect(...words) {
  const argv = [inspector, '--cli', toolgate, 'connect', socket, '--session', session, ...words];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, argv, (failure, out, err) => {
      try {
        resolve(JSON.parse(out || err));
      } catch {
        reject(new Error(`the inspector printed no JSON: ${out}${err}${failure ?? ''}`));
      }
    });
  });
}

await play({
  list: async () => (await inspect('--method', 'tools/list')).tools.map((tool) => tool.name),
  call: async (name, args) => {
    const pairs = Object.entries(args).flatMap(([key, value]) => ['--tool-arg', `${key}=${value}`]);
    const answer = await inspect('--method', 'tools/call', '--tool-name', name, ...pairs);
    return answer.error ? { isError: true, text: answer.error.message } : told(answer);
  },
  knowsTools: true,
});
end();
