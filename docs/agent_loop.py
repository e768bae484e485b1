"""An agent that runs its own tools: it calls `toolgate/check` before each one and `toolgate/report` after.

It needs only Python's standard library. You provide `model` and `tools`:
    model(messages) -> (tool name, arguments), or None at the end
    tools = {"get_weather": get_weather, …}, declared with `toolgate serve --tools FILE` or toolgate/register
"""
import json, socket


class Toolgate:
    def __init__(self, path, session):
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.connect(path)
        self.lines, self.id, self.session = self.stream.makefile("r"), 0, session

    def request(self, method, **params):
        self.id += 1
        params["_meta"] = {"dev.toolgate/session": self.session}
        request = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}
        self.stream.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(self.lines.readline())["result"]


def run(model, tools, gate, messages):
    while call := model(messages):
        name, arguments = call
        reply = gate.request("toolgate/check", name=name, arguments=arguments)
        notes = [reply["advice"]] if "advice" in reply else []   # what toolgate repaired
        if reply["verdict"] == "pass":
            try:
                outcome = {"result": tools[name](**reply["arguments"])}
            except Exception as error:
                outcome = {"error": {"message": str(error)}}
            reply = gate.request("toolgate/report", callId=reply["callId"], **outcome)
        # what the model reads next: the feedback, or the result (redacted, shortened) with its notes
        content = reply.get("content") or [{"type": "text", "text": reply["text"]}]
        reads = [block["text"] if block["type"] == "text" else block for block in content] + notes
        messages.append({"tool": name, "reads": reads})
        if reply["verdict"] == "halt":
            break
    return messages
