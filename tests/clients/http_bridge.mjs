// Streamable HTTP in front of the Unix socket, because the MCP conformance suite speaks only HTTP. For tests only: one
// process, local clients, no authentication.
//
// The bridge does what HTTP requires: sessions, statuses, headers against the body, SSE, the Host check. What JSON-RPC
// and MCP require comes from toolgate, unchanged, except for two fixture tools of the suite:
//   test_trigger_tool_change  the bridge rewrites a policy file and sends SIGHUP before it forwards the call; without a
//                             POLICIES-FOLDER an upstream changes its own list
//   test_missing_capability   must require a client capability (sampling). toolgate sends no requests, so no tool of it
//                             can: the bridge refuses the call if the capability was not declared
//
// usage: http_bridge.mjs SOCKET DAEMON-PID [POLICIES-FOLDER]   prints the URL when it listens
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const [socket, daemon, policies] = process.argv.slice(2);
const META = 'io.modelcontextprotocol/';
const MODERN = '2026-07-28';
const HEADER_MISMATCH = -32020;
const MISSING_CAPABILITY = -32021;
const STATUS = { [-32601]: 404, [-32602]: 400, [-32600]: 400, [-32700]: 400, [-32022]: 400 };

// One connection to the daemon, one message per line.
function dial(heard) {
  const stream = connect(socket);
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) heard(JSON.parse(line));
  });
  stream.on('error', () => {});
  return { say: (message) => stream.write(`${JSON.stringify(message)}\n`), close: () => stream.destroy() };
}

// A reply is plain JSON unless notifications come before it: then it is an event stream.
function replying(response, modern) {
  let streaming = false;
  return {
    event(message) {
      if (!streaming) response.writeHead(200, { 'content-type': 'text/event-stream' });
      streaming = true;
      response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    },
    answer(message, headers = {}) {
      if (streaming) {
        this.event(message);
        return response.end();
      }
      const status = modern && message.error ? (STATUS[message.error.code] ?? 200) : 200;
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(message));
    },
    refuse(status, id, code, text, data) {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message: text, data } }));
    },
  };
}

let changes = 0;
function changeTheTools() {
  if (!policies) return;
  const file = `${policies}/test_changing.lua`;
  writeFileSync(file, readFileSync(file, 'utf8').replace(/test_changing_\d+/g, `test_changing_${++changes}`));
  process.kill(Number(daemon), 'SIGHUP');
}

// ---- modern: each request has its own connection ------------------------------------------------------------------

// Why the request contradicts itself or lacks what the fixture tool requires; undefined if it does neither.
function refusal(request, headers) {
  const version = request.params?._meta?.[`${META}protocolVersion`];
  if (version !== undefined && headers['mcp-protocol-version'] !== version) {
    return [HEADER_MISMATCH, 'the header MCP-Protocol-Version and _meta name different versions'];
  }
  const capabilities = request.params?._meta?.[`${META}clientCapabilities`] ?? {};
  if (request.params?.name === 'test_missing_capability' && !capabilities.sampling) {
    return [MISSING_CAPABILITY, 'this tool needs the capability sampling', { requiredCapabilities: { sampling: {} } }];
  }
}

function serveModern(message, headers, response) {
  const reply = replying(response, true);
  const why = refusal(message, headers);
  if (why) return reply.refuse(400, message.id, ...why);
  if (message.params?.name === 'test_trigger_tool_change') changeTheTools();
  const line = dial((heard) => {
    if (heard.method) return reply.event(heard);
    reply.answer(heard);
    line.close();
  });
  response.on('close', () => line.close());
  if (message.id === undefined) response.writeHead(202).end();
  line.say(message);
}

// ---- legacy: a session is a connection; replies are matched by id, progress by token ------------------------------

const sessions = new Map();

function openSession() {
  const session = { id: randomUUID(), waiting: new Map(), tokens: new Map(), listener: undefined };
  session.line = dial((heard) => {
    if (heard.method) {
      const reply = session.tokens.get(heard.params?.progressToken);
      if (reply) reply.event(heard);
      else if (session.listener) session.listener.event(heard);
      return;
    }
    const waiter = session.waiting.get(heard.id);
    session.waiting.delete(heard.id);
    waiter?.(heard);
  });
  sessions.set(session.id, session);
  return session;
}

function serveLegacy(message, headers, response) {
  const reply = replying(response, false);
  const named = headers['mcp-session-id'];
  const session = message.method === 'initialize' ? openSession() : sessions.get(named);
  if (!session) return reply.refuse(named ? 404 : 400, message.id, -32600, 'no such session: open one by initialize');
  if (message.id === undefined) {
    session.line.say(message);
    return response.writeHead(202).end();
  }
  if (message.params?.name === 'test_trigger_tool_change') changeTheTools();
  const token = message.params?._meta?.progressToken;
  if (token !== undefined) session.tokens.set(token, reply);
  session.waiting.set(message.id, (heard) => {
    session.tokens.delete(token);
    reply.answer(heard, { 'mcp-session-id': session.id });
  });
  session.line.say(message);
}

// ---- HTTP ---------------------------------------------------------------------------------------------------------

function isLocal(headers) {
  const local = (host) => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host ?? '');
  return local(headers.host) && (!headers.origin || local(headers.origin.replace(/^https?:\/\//, '')));
}

const server = createServer((request, response) => {
  if (!isLocal(request.headers)) return response.writeHead(403).end('local clients only');
  const session = sessions.get(request.headers['mcp-session-id']);
  if (request.method === 'GET' && session) {
    session.listener = replying(response, false);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    session.listener.event = (message) => response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    return;
  }
  if (request.method === 'DELETE' && session) {
    session.line.close();
    sessions.delete(session.id);
    return response.writeHead(200).end();
  }
  if (request.method !== 'POST') return response.writeHead(session === undefined ? 404 : 405).end();
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (text) => (body += text));
  request.on('end', () => {
    let message;
    try {
      message = JSON.parse(body);
    } catch {
      return replying(response).refuse(400, null, -32700, 'the body is not JSON');
    }
    const modern = request.headers['mcp-protocol-version'] === MODERN
      || message.params?._meta?.[`${META}protocolVersion`] !== undefined || message.method === 'server/discover';
    (modern ? serveModern : serveLegacy)(message, request.headers, response);
  });
});

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
