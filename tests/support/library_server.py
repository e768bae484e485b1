"""An MCP server over stdio with prompts, resources and templates, which are in a file that is read for each list.

LIBRARY: the file, JSON {"prompts", "resources", "templates", "page", "capabilities", "silent", "instructions",
"said"}: the text of all prompts, with "{argument}" in it. Prompts, resources and
completions are answered with what was asked for (a URI with "slow" never); its tool `do` sends what its arguments say, or links to a resource.
MODERN: it answers server/discover alone. HEARD: a file to which each request is appended.
"""
import json
import os
import sys
import time

MODERN = bool(os.environ.get("MODERN"))
LISTS = {"prompts/list": ("prompts", "prompts"), "resources/list": ("resources", "resources"),
         "resources/templates/list": ("templates", "resourceTemplates")}
WATCHES = []  # the ids of requests that wait for changes of a resource
TOOL = {"name": "do", "inputSchema": {"type": "object"}}


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def library():
    with open(os.environ["LIBRARY"], encoding="utf-8") as file:
        return json.load(file)


def capabilities():
    changes = {"listChanged": not library().get("silent"), "subscribe": True}
    every = {"tools": {}, "prompts": changes, "resources": changes, "completions": {}, "logging": {}}
    return library().get("capabilities", every)


def words():
    return {"instructions": library()["instructions"]} if "instructions" in library() else {}


def listed(method, params):
    """A page of `page` entries, if that is given."""
    key, member = LISTS[method]
    items, start = library().get(key, []), int(params.get("cursor", 0))
    page = library().get("page", len(items) or 1)
    answer = {member: items[start:start + page]}
    if start + page < len(items):
        answer["nextCursor"] = str(start + page)
    return answer


def do(arguments):
    if "notify" in arguments:
        write({"method": "notifications/" + arguments["notify"], "params": arguments.get("params", {})})
    while "end_watches" in arguments and WATCHES:
        write({"id": WATCHES.pop(), "result": {"resultType": "complete"}})
    if "leave" in arguments:
        os._exit(1)
    if "sleep" in arguments:  # and read nothing
        time.sleep(arguments["sleep"])
    if "link" in arguments:
        return {"content": [{"type": "resource_link", "uri": arguments["link"], "name": "link"}]}
    return {"content": [{"type": "text", "text": os.environ.get("TOKEN", "done")}]}


def read(params):
    uri = params["uri"]
    if "slow" in uri:
        return None
    if "missing" in uri:
        raise LookupError(uri)
    size = int(uri.split("size=")[1]) if "size=" in uri else 0
    text = "x" * size if size else "%s of %s" % (uri, os.environ.get("TOKEN", "the library"))
    return {"contents": [{"uri": uri, "mimeType": None if "odd" in uri else "text/plain", "text": text}], "_meta": {"dev.toolgate/verdict": {}, "k": 1}}


def result_of(method, params):
    if method in LISTS:
        return listed(method, params)
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return do(params.get("arguments", {}))
    if method == "resources/read":
        return read(params)
    if method == "prompts/get":
        said = params["name"] + " " + json.dumps(params.get("arguments", {}), sort_keys=True)
        for name, value in params.get("arguments", {}).items():
            said = library().get("said", said).replace("{%s}" % name, value)
        said = said if params.get("arguments") else library().get("said", said)
        return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
    if method == "completion/complete":
        return {"completion": {"values": [params["ref"].get("name", params["ref"].get("uri")) + "!"], "hasMore": False}}
    return {}


def answer(request):
    method, params = request["method"], request.get("params", {})
    if "HEARD" in os.environ:
        with open(os.environ["HEARD"], "a", encoding="utf-8") as file:
            file.write(json.dumps({"method": method, "params": params}) + "\n")
    if "id" not in request:
        return
    try:
        if method == ("initialize" if MODERN else "server/discover"):
            write({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        elif method == "initialize":
            write({"id": request["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": capabilities(),
                                                   "serverInfo": {"name": "library", "version": "1"}, **words()}})
        elif method == "server/discover":
            write({"id": request["id"], "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                                                   "capabilities": capabilities(), **words()}})
        elif method == "subscriptions/listen":
            if "resourceSubscriptions" in params["notifications"]:
                WATCHES.append(request["id"])
        else:
            result = result_of(method, params)
            if result is None:
                return
            write({"id": request["id"], "result": {**({"resultType": "complete"} if MODERN else {}), **result}})
    except LookupError as error:
        write({"id": request["id"], "error": {"code": -32002, "message": "no such resource: %s" % error}})


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        answer(message)
