"""An agent that runs its own tools and lets toolgate judge each call: `check` before, `report` after.

Nothing but Python's standard library. `model` and `tools` are yours:
    model(messages) -> (tool name, arguments), or None when it is done
    tools = {"get_weather": get_weather, …}, declared by `toolgate serve --tools FILE` or by toolgate/register
"""
import json, socket


class Toolgate:
    def __init__(self, path, session):
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.connect(path)
        self.lines, self.id, self.session = self.stream.makefile("r"), 0, session

    def ask(self, method, **params):
        self.id += 1
        params["_meta"] = {"dev.toolgate/session": self.session}
        request = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}
        self.stream.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(self.lines.readline())["result"]


def run(model, tools, gate, messages):
    while call := model(messages):
        name, arguments = call
        said = gate.ask("toolgate/check", name=name, arguments=arguments)
        notes = [said["advice"]] if "advice" in said else []   # what was mended
        if said["verdict"] == "pass":
            try:
                outcome = {"result": tools[name](**said["arguments"])}
            except Exception as trouble:
                outcome = {"error": {"message": str(trouble)}}
            said = gate.ask("toolgate/report", callId=said["callId"], name=name,
                            arguments=said["arguments"], **outcome)
        # what the model reads next: the result as it may be read (redacted, shortened) with notes, or the feedback
        content = said.get("content") or [{"type": "text", "text": said["text"]}]
        reads = [block["text"] if block["type"] == "text" else block for block in content] + notes
        messages.append({"tool": name, "reads": reads})
        if said["verdict"] == "halt":
            break
    return messages
