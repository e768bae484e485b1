// The official TypeScript SDKs, v1 and v2, and the MCP Inspector over `toolgate connect`, while the daemon is killed in the middle of calls and
// started again 5 s later: one answer to each request, and the client's session never ends.
// usage: restart.mjs TOOLGATE FOLDER (with policies/; the daemon is this program's own)
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { check, end, told } from './dialogue.mjs';
import { inspect, inspectCall } from './inspect.mjs';

const AWAY_MS = 5000;
const [toolgate, folder] = process.argv.slice(2);
const socket = `${folder}/s`;
let daemon;

async function until(what, condition) {
  for (let i = 0; i < 2000; i++) {
    if (await condition()) return;
    await wait(10);
  }
  throw new Error(`waited in vain until ${what}`);
}

async function serve() {
  daemon = spawn(toolgate, ['serve', '--socket', socket, '--policies', `${folder}/policies`], { stdio: 'ignore' });
  await until('the daemon listens', () => existsSync(socket));
}

async function kill() {
  const gone = new Promise((resolve) => daemon.once('exit', resolve));
  daemon.kill('SIGKILL');
  await gone;
  rmSync(socket, { force: true });
}

const runs = () => (existsSync(`${folder}/ran`) ? readFileSync(`${folder}/ran`, 'utf8').length / 2 : 0);

function forget() {
  for (const file of ['ran', 'go']) rmSync(`${folder}/${file}`, { force: true });
}

async function survive(name, client) {
  forget();
  const call = (tool) => client.callTool({ name: tool, arguments: { folder } });
  check(`${name}: lists its tools`, (await client.listTools()).tools.some((tool) => tool.name === 'look'));
  const inFlight = [call('look'), call('change')];
  await until('both tools run', () => runs() === 2);
  await kill();
  const answers = (await Promise.all(inFlight)).map((result) => ({ ...told(result),
    code: result._meta['dev.toolgate/verdict'].code }));
  check(`${name}: each call has an answer that says what happened`,
    answers.every((answer) => answer.isError && answer.code === 'gateway_restarted'), answers);
  check(`${name}: the one that reads may be repeated, the other not`,
    answers[0].verdict === 'wait' && answers[1].verdict === 'refuse', answers);
  const late = client.listTools();
  await wait(AWAY_MS);
  writeFileSync(`${folder}/go`, '');
  await serve();
  check(`${name}: a request of the time between is answered by the next daemon`, (await late).tools.length > 0);
  check(`${name}: the next call works`, !told(await call('look')).isError);
  check(`${name}: no call was repeated`, runs() === 3, runs());
  await client.close();
}

await serve();
const v1 = new ClientV1({ name: 'sdk-v1', version: '1' });
await v1.connect(new StdioV1({ command: toolgate, args: ['connect', socket] }));
await survive('SDK v1', v1);
for (const mode of ['legacy', { pin: '2026-07-28' }]) {
  const v2 = new ClientV2({ name: 'sdk-v2', version: '1' }, { versionNegotiation: { mode } });
  await v2.connect(new StdioV2({ command: toolgate, args: ['connect', socket] }));
  await survive(`SDK v2, ${mode === 'legacy' ? mode : 'modern'}`, v2);
}

// Each of the Inspector's requests has a process and a bridge of its own: one whose daemon is killed, one that begins while
// none is there, one that comes after.
async function inspectorSurvives() {
  forget();
  const bridge = [toolgate, 'connect', socket];
  const call = () => inspectCall(bridge, 'look', { folder });
  const inFlight = call();
  await until('the tool runs', () => runs() === 1);
  await kill();
  const answer = await inFlight;
  check('Inspector: the call has an answer that says what happened',
    answer.isError && answer._meta['dev.toolgate/verdict'].code === 'gateway_restarted', answer);
  const late = inspect(bridge, '--method', 'tools/list');
  await wait(AWAY_MS);
  writeFileSync(`${folder}/go`, '');
  await serve();
  check('Inspector: one that begins while no daemon is there waits for it', (await late).tools?.length > 0, await late);
  check('Inspector: the next call works', !(await call()).isError);
  check('Inspector: no call was repeated', runs() === 2, runs());
}

await inspectorSurvives();
await kill();
end();
