// An MCP server of the official SDK, as an upstream: the tools that the conformance suite requires
// (fixture_server.mjs suite), or those of policies/ with fixed answers (fixture_server.mjs desk). It checks no arguments.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, CompleteRequestSchema, GetPromptRequestSchema, ListPromptsRequestSchema,
  ListResourcesRequestSchema, ListResourceTemplatesRequestSchema, ListToolsRequestSchema, McpError,
  ReadResourceRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const OPEN = { type: 'object' };
const text = (words) => ({ content: [{ type: 'text', text: words }] });
const IMAGE = { type: 'image', mimeType: 'image/png',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==' };

// ---- the tools and results that the suite requires ----------------------------------------------------------------

const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { $anchor: 'addressDef', type: 'object',
    properties: { street: { type: 'string' }, city: { type: 'string' } } } },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] }, phone: { type: 'string' }, email: { type: 'string' } },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

let changes = 0;
let promptChanges = 0;

async function progress({ extra, meta }) {
  for (const [done, message] of [[0, 'begun'], [50, 'half'], [100, 'done']]) {
    await extra.sendNotification({ method: 'notifications/progress',
      params: { progressToken: meta?.progressToken, progress: done, total: 100, message } });
  }
  return text('done');
}

async function logging({ extra }) {
  for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
  }
  return text('done');
}

async function changePrompts({ server }) {
  promptChanges += 1;
  await server.sendPromptListChanged();
  return text('changed');
}

async function change({ server }) {
  changes += 1;
  await server.sendToolListChanged();
  return text('changed');
}

const SUITE = {
  test_simple_text: { run: () => text('This is a simple text response for testing.') },
  test_image_content: { run: () => ({ content: [IMAGE] }) },
  test_audio_content: { run: () => ({ content: [{ type: 'audio', mimeType: 'audio/wav',
    data: 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=' }] }) },
  test_embedded_resource: { run: () => ({ content: [{ type: 'resource', resource: { uri: 'test://embedded-resource',
    mimeType: 'text/plain', text: 'This is an embedded resource content.' } }] }) },
  test_multiple_content_types: { run: () => ({ content: [{ type: 'text', text: 'Multiple content types test:' }, IMAGE,
    { type: 'resource', resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json',
      text: '{"test":"data","value":123}' } }] }) },
  test_error_handling: { run: () => ({ ...text('This tool intentionally returns an error for testing'), isError: true }) },
  test_tool_with_progress: { run: progress },
  test_tool_with_logging: { run: logging },
  test_logging_tool: { run: () => text('done') },
  test_streaming_elicitation: { run: () => text('done') },
  test_missing_capability: { run: () => text('done') },
  test_trigger_tool_change: { run: change },
  test_trigger_prompt_change: { run: changePrompts },
  json_schema_2020_12_tool: { schema: SCHEMA_2020_12, describe: 'Tool with JSON Schema 2020-12 features',
    run: ({ args }) => text(JSON.stringify(args)) },
};

// ---- the prompts and resources that the suite requires ------------------------------------------------------------

const says = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
const words = (told) => ({ type: 'text', text: told });
const argument = (name) => ({ name, description: `The ${name}`, required: true });

const PROMPTS = {
  test_simple_prompt: { get: () => says(words('This is a simple prompt for testing.')) },
  test_prompt_with_arguments: { arguments: [argument('arg1'), argument('arg2')],
    get: ({ arg1, arg2 }) => says(words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)) },
  test_prompt_with_embedded_resource: { arguments: [argument('resourceUri')],
    get: ({ resourceUri }) => says({ type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain',
      text: 'Embedded resource content for testing.' } }, words('Please process the embedded resource above.')) },
  test_prompt_with_image: { get: () => says(IMAGE, words('Please analyze the image above.')) },
};

const RESOURCES = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: IMAGE.data },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched.' },
};
const TEMPLATE = 'test://template/{id}/data';

function read(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id) {
    return { contents: [{ uri, mimeType: 'application/json',
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] };
  }
  if (!RESOURCES[uri]) throw new McpError(-32002, 'Resource not found', { uri });
  return { contents: [{ uri, ...RESOURCES[uri] }] };
}

function servePromptsAndResources(server) {
  const prompts = Object.entries(PROMPTS).map(([name, prompt]) => (
    { name, description: `The prompt ${name}.`, arguments: prompt.arguments }));
  const resources = Object.entries(RESOURCES).map(([uri, one]) => (
    { uri, name: uri, description: `The resource ${uri}.`, mimeType: one.mimeType }));
  server.setRequestHandler(ListPromptsRequestSchema, () => (
    { prompts: [...prompts, { name: `test_changing_prompt_${promptChanges}`, description: 'Its name changes.' }] }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => PROMPTS[params.name].get(params.arguments ?? {}));
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => (
    { resourceTemplates: [{ uriTemplate: TEMPLATE, name: 'template', mimeType: 'application/json' }] }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => read(params.uri));
  server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: ['paris', 'park'], hasMore: false } }));
}

// ---- the tools of policies/ that dialogue.mjs calls ---------------------------------------------------------------

const ACTION = (...names) => ({ type: 'string', enum: names });
const schema = (required, properties) => ({ type: 'object', properties, required, additionalProperties: false });
const ANY = { type: 'string' };
const json = (value) => ({ ...text(JSON.stringify(value)), structuredContent: value });

const DESK = {
  get_events: {
    schema: schema(['action'], { action: ACTION('by_ids', 'by_time_span'), ids: { type: 'array', items: ANY },
      start: { type: 'string', format: 'date-time' }, end: { type: 'string', format: 'date-time' } }),
    run: () => json({ events: [{ id: 'e1', title: 'Dentist', start: '2026-05-04T08:30:00Z' }] }),
  },
  create_task: {
    schema: schema(['title', 'project_id'], { title: { type: 'string', minLength: 1 },
      project_id: { type: 'string', format: 'uuid' } }),
    hints: { readOnlyHint: false, destructiveHint: false },
    run: ({ args }) => json({ task: { id: 't1', title: args.title } }),
  },
  lookup_contact: {
    schema: schema(['action'], { action: ACTION('search', 'get'), query: ANY, contact_id: ANY }),
    run: () => json({ contacts: [{ id: 'c4', name: 'Chloe Martin' }] }),
  },
  home_assistant: { schema: schema(['action'], { action: ACTION('list_tools', 'call_tool') }), run: () => json({}) },
  lookup_contact_places: { schema: schema([], { contact_query: ANY }), run: () => json({ places: [] }) },
  lookup_place_contacts: { schema: schema([], { place_query: ANY }), run: () => json({ contacts: [] }) },
  search_orders: { schema: schema(['customer_id'], { customer_id: ANY }), run: () => json({ orders: [] }) },
};

// ---- the server ---------------------------------------------------------------------------------------------------

const tools = { suite: SUITE, desk: DESK }[process.argv[2]];
const server = new Server({ name: 'fixtures', version: '1' },
  { capabilities: { tools: { listChanged: true }, logging: {},
    ...(tools === SUITE ? { prompts: { listChanged: true }, resources: { subscribe: true }, completions: {} } : {}) } });
if (tools === SUITE) servePromptsAndResources(server);

function listed() {
  const list = Object.entries(tools).map(([name, tool]) => ({
    name,
    description: tool.describe ?? `The fixture ${name}.`,
    inputSchema: tool.schema ?? OPEN,
    annotations: tool.hints ?? { readOnlyHint: true },
  }));
  if (tools === SUITE) list.push({ name: `test_changing_${changes}`, description: 'Its name changes.', inputSchema: OPEN });
  return { tools: list };
}

server.setRequestHandler(ListToolsRequestSchema, listed);
server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) =>
  tools[params.name].run({ args: params.arguments ?? {}, meta: params._meta, extra, server }));
await server.connect(new StdioServerTransport());
