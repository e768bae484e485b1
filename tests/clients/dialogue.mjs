// The same dialogue for every MCP client: list, a call that passes, one repaired on the second try, an unknown tool,
// a loop. Prints TAP, which run.lua counts.
//
// `list` returns the tools' names; `call` makes one call and returns {isError, text, verdict}; `knowsTools`: the client
// itself refuses an unknown tool.
let failed = 0;

export function check(what, good, otherwise) {
  if (!good) failed++;
  console.log(`${good ? 'ok' : 'not ok'} - ${what}`);
  if (!good) console.log(`#   ${String(typeof otherwise === 'string' ? otherwise : JSON.stringify(otherwise)).replace(/\n/g, '\n#   ')}`);
}

const NAMES = ['create_task', 'get_events', 'home_assistant', 'lookup_contact', 'lookup_contact_places',
  'lookup_place_contacts', 'search_orders'];
const DAY = { action: 'by_time_span', start: '2026-05-04T00:00:00Z', end: '2026-05-05T00:00:00Z' };
const GARDEN = '9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11';

export async function play({ list, call, knowsTools = false }) {
  const names = (await list()).sort();
  check('lists the tools of policies/', NAMES.every((name) => names.includes(name)), names);

  const passes = await call('get_events', DAY);
  check('a valid call passes', !passes.isError && passes.text.includes('Dentist'), passes);

  const first = await call('create_task', { titel: 'Prune the roses', project_id: GARDEN });
  check('an invalid call is explained', first.isError && first.text.includes("did you mean 'title'?"), first);
  const second = await call('create_task', { title: 'Prune the roses', project_id: GARDEN });
  check('and repaired on the second try', !second.isError && second.text.includes('Prune the roses'), second);

  const unknown = await call('get_evnts', DAY);
  check(knowsTools ? 'an unknown tool is refused by the client itself'
    : 'an unknown tool is a result that suggests the closest',
  unknown.isError && (knowsTools || unknown.text.includes('get_events')), unknown);

  const loop = [];
  for (let i = 0; i < 5; i++) loop.push(await call('lookup_contact', { action: 'search', query: 'chloe' }));
  check('the same call twice passes', !loop[0].isError && !loop[1].isError, loop.slice(0, 2));
  check('the third and fourth time it is refused', loop[2].isError && loop[3].isError, loop.slice(2, 4));
  check('the fifth time halts the run', loop[4].isError && loop[4].verdict !== 'refuse', loop[4]);
}

// Converts a CallToolResult to the result of `call`.
export function told(result) {
  return {
    isError: result.isError === true,
    text: (result.content ?? []).map((block) => block.text ?? '').join('\n'),
    verdict: result._meta?.['dev.toolgate/verdict']?.verdict,
  };
}

export function end() {
  process.exit(failed === 0 ? 0 : 1);
}
