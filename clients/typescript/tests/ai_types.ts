// The types that a program sees through `guarded`: this file need only compile, with every version of the AI SDK.
import { generateText, stepCountIs, streamText, tool, ToolLoopAgent } from "ai";
import { Gate } from "toolgate-client";
import { guarded } from "toolgate-client/ai";
import { z } from "zod";

const double = tool({ inputSchema: z.object({ a: z.number() }), execute: async ({ a }) => ({ b: 2 * a }) });
const tools = { double };
const session = new Gate("/nonexistent").session("types");

export async function types(): Promise<number[]> {
  const { toolResults } = await generateText(guarded({
    model: "x/y", tools, prompt: "?", stopWhen: stepCountIs(3),
    prepareStep: ({ stepNumber }) => stepNumber > 2 ? { toolChoice: "none" } : {},
    experimental_repairToolCall: async ({ toolCall, error }) => error.message ? toolCall : null,
  }, session));
  void streamText(guarded({ model: "x/y", tools, prompt: "?" }, session)).text;
  void generateText(guarded({ model: "x/y", messages: [{ role: "user", content: "?" }] }, session));
  void generateText(guarded({ model: "x/y", tools, prompt: "?", toolChoice: "required", activeTools: ["double"] }, session));
  void generateText({
    model: "x/y", prompt: "?", ...guarded({ tools }, session),
    onStepFinish: ({ toolCalls }) => { for (const call of toolCalls) if (!call.dynamic) call.input.a.toFixed(); },
  });
  void new ToolLoopAgent(guarded({ model: "x/y", tools, stopWhen: [stepCountIs(3)] }, session)).generate({ prompt: "?" });
  return toolResults.flatMap((one) => one.dynamic ? [] : [one.output.b, one.input.a]);
}
