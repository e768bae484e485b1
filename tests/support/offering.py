"""An MCP server over stdio whose tools are in a file, which is read for each tools/list.

OFFER: the file, a JSON array of definitions. GATE: if set, nothing is answered until that file exists. A call returns
the `answer` in its definition's _meta, fails with the `error` there, or else its tool's name and arguments; `tell…` sends
list_changed, `leave` ends the process.
"""
import json
import os
import sys
import time


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def offer(request):
    """Sends the file's text without line breaks, so that numbers and the order of keys are unchanged."""
    with open(os.environ["OFFER"], encoding="utf-8") as file:
        text = file.read()
    json.loads(text)
    sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}\n' % (json.dumps(request["id"]), text.replace("\n", " ")))
    sys.stdout.flush()


def call(name, arguments):
    if name == "leave":
        os._exit(1)
    if name.startswith("tell"):
        write({"method": "notifications/tools/list_changed"})
    with open(os.environ["OFFER"], encoding="utf-8") as file:
        for tool in json.load(file):
            if tool["name"] == name and "answer" in tool.get("_meta", {}):
                return {"result": tool["_meta"]["answer"]}
            if tool["name"] == name and "error" in tool.get("_meta", {}):
                return {"error": tool["_meta"]["error"]}
    return {"result": {"content": [{"type": "text", "text": "%s %s" % (name, json.dumps(arguments, sort_keys=True))}]}}


def answer_of(method, params):
    if method == "initialize":
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
                           "serverInfo": {"name": "offering", "version": "1"}}}
    return call(params["name"], params.get("arguments", {})) if method == "tools/call" else {"result": {}}


while os.environ.get("GATE") and not os.path.exists(os.environ["GATE"]):
    time.sleep(0.01)
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        if request["method"] == "server/discover":
            write({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        elif request["method"] == "tools/list":
            offer(request)
        else:
            write({"id": request["id"], **answer_of(request["method"], request.get("params", {}))})
