// The MCP Inspector's command line over `toolgate connect`: a process for each request.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json');
const inspector = join(dirname(manifest), 'clients/launcher/build/index.js');

// `bridge`: the words of `toolgate connect`. The inspector exits with an error if the tool fails; its output is the result
// in any case. {error} on stderr is an error of the inspector itself.
export function inspect(bridge, ...words) {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [inspector, '--cli', ...bridge, ...words], (failure, out, err) => {
      try {
        resolve(JSON.parse(out || err));
      } catch {
        reject(new Error(`the inspector printed no JSON: ${out}${err}${failure ?? ''}`));
      }
    });
  });
}

export function inspectCall(bridge, name, args) {
  const pairs = Object.entries(args).flatMap(([key, value]) => ['--tool-arg', `${key}=${value}`]);
  return inspect(bridge, '--method', 'tools/call', '--tool-name', name, ...pairs);
}
