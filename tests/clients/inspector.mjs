// The MCP Inspector's command line plays the dialogue of all clients. usage: inspector.mjs TOOLGATE SOCKET
import { end, play, told } from './dialogue.mjs';
import { inspect, inspectCall } from './inspect.mjs';

const [toolgate, socket] = process.argv.slice(2);
const bridge = [toolgate, 'connect', socket, '--session', `inspector-${process.pid}`];

await play({
  list: async () => (await inspect(bridge, '--method', 'tools/list')).tools.map((tool) => tool.name),
  call: async (name, args) => {
    const answer = await inspectCall(bridge, name, args);
    return answer.error ? { isError: true, text: answer.error.message } : told(answer);
  },
  knowsTools: true,
});
end();
