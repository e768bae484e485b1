"""An MCP server over stdio that misbehaves on demand. Standard library only.

FAKE="word word=value …" in the environment sets how it starts; later the tool `do` takes `how`, the name of a function
of the class Ways below. Without either it behaves well.
"""
import json
import os
import select
import signal
import sys
import time

OPTIONS = dict((word.split("=") + [""])[:2] for word in os.environ.get("FAKE", "").split())
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ENDLESS = 3600


def write_raw(data):
    data = data.encode() if isinstance(data, str) else data
    while data:
        data = data[os.write(1, data):]


def write(message):
    write_raw(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")


def note(words):
    os.write(2, (words + "\n").encode())


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def answer(request, result):
    if "modern" in OPTIONS:
        result = {"resultType": "complete", **result}
    write({"id": request["id"], "result": result})


def fail(request, code, words, **more):
    write({"id": request["id"], "error": {"code": code, "message": words, **more}})


def notify(method, **params):
    write({"method": method, "params": params})


# State.
held = []       # requests that wait to be released
timers = []     # (when, function)
replies = []    # the results of those, as JSON
asked = {}      # our own requests: id -> function of the answer
cancelled = []  # ids
asks = 0
greeted = False
changed = 0
heard = 0


def ask(method, params, then):
    global asks
    asks += 1
    asked[asks] = then
    write({"id": asks, "method": method, "params": params})


def later(seconds, function):
    timers.append((time.monotonic() + seconds, function))


def meta_of(request):
    return request["params"].get("_meta", {})


def token(request):
    return meta_of(request).get("progressToken")


class Ways:
    """Each function misbehaves in one way, and most answer as well; the arguments are those of the call."""

    @staticmethod
    def silent(request, args):
        pass

    @staticmethod
    def garbage(request, args):
        write_raw("Server listening on stdio!\n\n\x1b[32mok\x1b[0m\n{ not json at all\n\xff\xfe\n[1,2]\n42\n\"text\"\nnull\n")
        write_raw(b"\xff\xfe\x00\x01\n")
        answer(request, text("after garbage"))

    @staticmethod
    def json_log(request, args):
        write_raw('{"level":"error","error":"no disk"}\n{"level":"info","id":%d,"msg":"looked up"}\n' % request["id"])
        answer(request, text("after a log"))

    @staticmethod
    def truncated(request, args):
        write_raw('{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","te\n' % request["id"])

    @staticmethod
    def half_line_and_exit(request, args):
        write_raw('{"jsonrpc":"2.0","id":%d,"result":{"content":[' % request["id"])
        os._exit(3)

    @staticmethod
    def long_line(request, args):
        size, body = int(args["mb"]) * 1000000, '{"content":[{"type":"text","text":"%s"}]}'
        body = body % ("x" * size)
        if args.get("id_last"):
            write_raw('{"result":%s,"jsonrpc":"2.0","id":%d}\n' % (body, request["id"]))
        else:
            write_raw('{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (request["id"], body))

    @staticmethod
    def endless_line(request, args):
        write_raw('{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request["id"])
        for _ in range(20):
            write_raw("x" * 1000000)

    @staticmethod
    def wrong_ids(request, args):
        one = request["id"]
        for other in (one + 1000000, one - 1, str(one + 1000000), one + 0.5, -one, 0, True, [one], {"id": one}, 2 ** 70):
            write({"id": other, "result": text("not yours")})
        answer(request, text("yours"))

    @staticmethod
    def twice(request, args):
        answer(request, text("first"))
        answer(request, text("second"))
        fail(request, -32000, "third")

    @staticmethod
    def no_jsonrpc(request, args):
        write_raw(json.dumps({"id": request["id"], "result": text("no jsonrpc")}) + "\n")

    @staticmethod
    def null_id(request, args):
        write({"id": None, "result": {}})
        answer(request, text("after null"))

    @staticmethod
    def error_null(request, args):
        write({"id": request["id"], "result": text("error is null"), "error": None})

    @staticmethod
    def neither(request, args):
        write({"id": request["id"]})

    @staticmethod
    def keys_twice(request, args):
        write_raw('{"jsonrpc":"2.0","id":%d,"id":%d,"result":%s}\n' % (request["id"] + 4096, request["id"],
                                                                       json.dumps(text("two ids"))))
        answer(request, text("one id"))

    @staticmethod
    def batch(request, args):
        write_raw(json.dumps([{"jsonrpc": "2.0", "id": request["id"], "result": text("in a batch")}]) + "\n")

    @staticmethod
    def id_as_string(request, args):
        write({"id": str(request["id"]), "result": text("as a string")})

    @staticmethod
    def id_as_float(request, args):
        write({"id": float(request["id"]), "result": text("as a float")})

    @staticmethod
    def shared_line(request, args):
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
        write_raw("Loading ... " + json.dumps(note) + json.dumps(
            {"jsonrpc": "2.0", "id": request["id"], "result": text("on a shared line")}) + " done.\n")

    @staticmethod
    def indented(request, args):
        write_raw(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("over lines")}, indent=2) + "\n")

    @staticmethod
    def error_of_null(request, args):
        write({"id": None, "error": {"code": -32600, "message": "q must be a number"}})

    @staticmethod
    def broken_off(request, args):
        """It ends between two tokens, as an indented message would, and does not go on."""
        write_raw('{"jsonrpc":"2.0","id":%d,"result":{"content":[\n' % request["id"])

    @staticmethod
    def broken_nested(request, args):
        """What is inside of a broken message is data of the tool, not a message."""
        inner = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("forged")})
        write_raw('{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":%s\n' % (request["id"], inner))

    @staticmethod
    def raw(request, args):
        """The result as given, which may not be JSON."""
        write_raw('{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (request["id"], args["result"]))

    @staticmethod
    def prints(request, args):
        """A log line on stdout, where its messages belong."""
        write_raw(args["words"] + "\n")
        answer(request, text("printed"))

    @staticmethod
    def dribbles(request, args):
        """The answer in pieces of three bytes, with pauses."""
        line = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("drop by drop")}) + "\n"
        for i in range(0, len(line), 3):
            write_raw(line[i:i + 3])
            time.sleep(0.002)

    @staticmethod
    def byte_order_mark(request, args):
        write_raw("\ufeff" + json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("marked")}) + "\n")

    @staticmethod
    def late(request, args):
        """The answer, and later the same answer again."""
        answer(request, text("in time"))
        answer(request, text(args["words"]))

    @staticmethod
    def refuse_with_data(request, args):
        data = {"said": args["words"], args["words"]: [args["words"] + "é\\"]}
        fail(request, -32000, "it failed", data=data)

    @staticmethod
    def error_is_text(request, args):
        write({"id": request["id"], "error": args["words"]})

    @staticmethod
    def bad_utf8(request, args):
        write_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n' % request["id"])

    @staticmethod
    def deep(request, args):
        Ways.raw(request, {"result": '{"content":[],"structuredContent":' + '{"a":' * 500 + "1" + "}" * 500 + "}"})

    @staticmethod
    def many_values(request, args):
        Ways.raw(request, {"result": '{"content":[],"structuredContent":{"a":[' + "1," * 500000 + "1]}}"})

    @staticmethod
    def refuse(request, args):
        fail(request, int(args["code"]), args["words"])

    @staticmethod
    def is_error(request, args):
        answer(request, {**text("it went wrong" + "!" * int(args.get("size", 0))), "isError": True})

    @staticmethod
    def exit(request, args):
        note("Traceback (most recent call last):\n  File \"server.py\", line 3, in run\nValueError: " + args.get("words", "gone"))
        os._exit(int(args.get("code", 1)))

    @staticmethod
    def kill(request, args):
        os.kill(os.getpid(), signal.SIGKILL)

    @staticmethod
    def answer_and_exit(request, args):
        answer(request, text("last words"))
        os._exit(0)

    @staticmethod
    def answer_without_line_end_and_exit(request, args):
        write_raw(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("last words")}, indent=args.get("indent")))
        os._exit(0)

    @staticmethod
    def error_in_cp1252(request, args):
        write_raw(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"no caf\xe9","data":NaN}}\n' % request["id"])

    @staticmethod
    def raw_tab(request, args):
        write_raw('{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\tb"}]}}\n' % request["id"])

    @staticmethod
    def flood_stderr(request, args):
        for i in range(5000):
            note("line %d of a flood" % i)
        answer(request, text("flooded"))

    @staticmethod
    def long_stderr(request, args):
        os.write(2, b"y" * 300000)
        note("")
        answer(request, text("long"))

    @staticmethod
    def list_changes(request, args):
        global changed
        changed += 1
        for _ in range(int(args.get("times", 1))):
            notify("notifications/tools/list_changed")
        answer(request, text("changed"))

    @staticmethod
    def progress(request, args):
        steps, mine = int(args.get("steps", 3)), token(request)
        for i in range(steps):
            notify("notifications/progress", progressToken=str(mine) if args.get("as_text") else mine, progress=i + 1,
                   total=steps, message="step %d" % (i + 1))
        answer(request, text("progress %s" % ("told" if token(request) else "not asked for")))

    @staticmethod
    def slow_progress(request, args):
        """Steps of some milliseconds each, then the answer."""
        steps, ms = int(args["steps"]), int(args["ms"])

        def step(i):
            if request["id"] in cancelled:
                return
            if i > steps:
                answer(request, text("done"))
                return
            notify("notifications/progress", progressToken=token(request), progress=i)
            later(ms / 1000, lambda: step(i + 1))
        step(1)

    @staticmethod
    def wild_progress(request, args):
        mine = token(request)
        for value in (1, 3, 2, 3, "4", None, 5, -1):
            notify("notifications/progress", progressToken=mine, progress=value)
        for other in (mine and mine + 1, None, "x", 10 ** 30, {}):
            notify("notifications/progress", progressToken=other, progress=9)
        write({"method": "notifications/progress"})
        write({"method": "notifications/progress", "params": [1]})
        answer(request, text("wild"))
        notify("notifications/progress", progressToken=mine, progress=100)

    @staticmethod
    def logs(request, args):
        notify("notifications/message", level="warning", logger="fake", data="it rains")
        notify("notifications/message", level="info", data={"n": 1})
        answer(request, text("logged"))

    @staticmethod
    def asks(request, args):
        """Sends a request to the client; the client's reply becomes the answer."""
        ask(args["method"], args.get("params", {}), lambda reply: answer(request, text(json.dumps(reply))))

    @staticmethod
    def elicits(request, args):
        def then(reply):
            replies.append(json.dumps(reply.get("result")))
            if request["id"] not in cancelled:
                answer(request, text("heard " + json.dumps(reply.get("result"))))
        ask("elicitation/create", {
            "message": args.get("message", "Which size?"),
            "requestedSchema": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "string", "enum": ["small", "large"], "description": "what to send"},
                "gift": {"type": "boolean"}}}}, then)

    @staticmethod
    def needs_input(request, args):
        """Elicitation in the modern era: input_required."""
        given = request["params"].get("inputResponses")
        if given:
            answer(request, text("heard %s with %s" % (json.dumps(given), request["params"].get("requestState"))))
            return
        question = {"method": "elicitation/create", "params": {
            "message": "Which size?", "requestedSchema": {"type": "object", "properties": {"size": {"type": "string"}}}}}
        names = ["size"] + ["size%d" % i for i in range(1, int(args.get("count", 1)))]
        write({"id": request["id"], "result": {"resultType": "input_required", "requestState": "s-1",
                                               "inputRequests": {name: question for name in names}}})

    @staticmethod
    def asks_a_lot(request, args):
        """Many requests to the client, without waiting for the replies."""
        for i in range(20000):
            write({"id": 1000000 + i, "method": "ping"})
        answer(request, text("asked a lot"))

    @staticmethod
    def reads_no_more(request, args):
        answer(request, text("bye"))
        time.sleep(ENDLESS)

    @staticmethod
    def closes_stdin(request, args):
        answer(request, text("bye"))
        os.close(0)
        time.sleep(ENDLESS)

    @staticmethod
    def closes_stdout(request, args):
        os.close(1)
        time.sleep(ENDLESS)

    @staticmethod
    def forks(request, args):
        """A child process that holds the pipes and would outlive the server."""
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(ENDLESS)
        answer(request, text(str(child)))


# ---- normal tools -----------------------------------------------------------------------------

def hold(request, args):
    held.append(request)


def release(request, args):
    for one in reversed(held):
        answer(one, text("held " + one["params"]["arguments"].get("name", "")))
    held.clear()
    answer(request, text("released"))


def slow(request, args):
    later(int(args.get("ms", 50)) / 1000,
          lambda: request["id"] in cancelled or answer(request, text("slow")))


def about(request, args):
    answer(request, text(json.dumps({"pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ), "argv": sys.argv[1:],
                                     "cancelled": len(cancelled), "replies": replies[-1:]})))


def do(request, args):
    way = getattr(Ways, args.get("how", ""), None)
    if not way:
        fail(request, -32602, "no such way: %s" % args.get("how"))
    else:
        way(request, args)


TOOLS = {
    "echo": ("Say a text back.", {"text": {"type": "string"}},
             lambda request, args: answer(request, text(args.get("text", "")))),
    "meta": ("The call's _meta.", {}, lambda request, args: answer(request, text(json.dumps(meta_of(request))))),
    "about": ("The process itself.", {}, about),
    "hold": ("Answer when released.", {"name": {"type": "string"}}, hold),
    "release": ("Answer all that are held, the last one first.", {}, release),
    "slow": ("Answer after a while.", {"ms": {"type": "integer"}}, slow),
    "do": ("Misbehave.", {"how": {"type": "string"}}, do),
}


def tools():
    listed = [{"name": name, "description": words, "inputSchema": {"type": "object", "properties": properties}}
              for name, (words, properties, _) in TOOLS.items()]
    for i in range(int(OPTIONS.get("tools", 0))):
        listed.append({"name": "tool_%d" % i, "inputSchema": {"type": "object"}})
    for i in range(changed):
        listed.append({"name": "new_%d" % (i + 1), "inputSchema": {"type": "object"}})
    listed.append({"name": "as_task", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}})
    return listed


def list_tools(request):
    cursor = request["params"].get("cursor")
    if "changes_first" in OPTIONS and not greeted:
        note("Error: not initialized")
        os._exit(8)
    elif "refuses_list" in OPTIONS:
        fail(request, -32601, "Method not found")
    elif "fails_list" in OPTIONS:
        fail(request, -32603, "database is locked")
    elif "deep_list" in OPTIONS:
        Ways.raw(request, {"result": '{"tools":[{"name":"deep","inputSchema":' + '{"not":' * 200 + "{}" + "}" * 201 + "]}"})
    elif "odd_text" in OPTIONS:
        listed = json.dumps(tools() + [{"name": "odd", "description": "@", "inputSchema": {"type": "object"}, "_meta": {"a/b": 1}}])
        listed = listed.encode().replace(b'"@"', b'"caf\xe9\tau lait"').replace(b'{"a/b": 1}', b'{"a/b": NaN}')
        write_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"tools":%s}}\n' % (request["id"], listed))
    elif "silent_list" in OPTIONS or ("silent_relist" in OPTIONS and changed == 1):
        pass
    elif "endless_pages" in OPTIONS:
        page = int(cursor or 0)
        answer(request, {"tools": [{"name": "page_%d" % page, "inputSchema": {"type": "object"}}],
                         "nextCursor": str(page + 1)})
    elif "circle" in OPTIONS:
        page = int(cursor or 0)
        answer(request, {"tools": [{"name": "page_%d" % page, "inputSchema": {"type": "object"}}],
                         "nextCursor": str((page + 1) % 3)})
    elif "pages" in OPTIONS:
        size, listed, at = int(OPTIONS["pages"]), tools(), int(cursor or 0)
        more = {"nextCursor": str(at + size)} if at + size < len(listed) else {}
        answer(request, {"tools": listed[at:at + size], **more})
    else:
        answer(request, {"tools": tools()})


def initialize(request):
    if "exit_at_initialize" in OPTIONS:
        note("Error: no licence")
        os._exit(4)
    if "silent" in OPTIONS:
        return
    if "modern" in OPTIONS:
        fail(request, -32022, "Unsupported protocol version", data={"supported": [MODERN]})
        return
    if "refuses" in OPTIONS:
        fail(request, -32603, "not today")
        return
    if "changes_first" in OPTIONS:
        notify("notifications/tools/list_changed")
        later(0.2, lambda: greet(request))
    else:
        greet(request)


def greet(request):
    global greeted
    greeted = True
    answer(request, {"protocolVersion": OPTIONS.get("version", request["params"]["protocolVersion"]),
                     "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "fake", "version": "1.0"}})


def discover(request):
    if "modern" not in OPTIONS:
        fail(request, -32601, "Method not found")
        return
    answer(request, {"supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": True}}, "ttlMs": 1000,
                     "cacheScope": "private", "_meta": {META + "serverInfo": {"name": "fake", "version": "2.0"}}})


def listen(request):
    notify("notifications/subscriptions/acknowledged",
           _meta={META + "subscriptionId": request["id"]}, notifications={"toolsListChanged": True})


def call(request):
    params = request["params"]
    meta = params.get("_meta", {})
    if "modern" in OPTIONS and not (meta.get(META + "protocolVersion") == MODERN and META + "clientCapabilities" in meta):
        fail(request, -32602, "no envelope")
    elif params["name"] == "as_task":
        fail(request, -32601, "Method not found")
    elif params["name"] not in TOOLS:
        fail(request, -32602, "Tool %s not found" % params["name"])
    else:
        TOOLS[params["name"]][2](request, params.get("arguments") or {})


def initialized(message):
    if "exit_after_initialize" in OPTIONS:
        os._exit(5)
    if "changes_at_once" in OPTIONS:
        global changed
        changed += 1
        notify("notifications/tools/list_changed")


METHODS = {
    "initialize": initialize,
    "server/discover": discover,
    "subscriptions/listen": listen,
    "notifications/initialized": initialized,
    "notifications/cancelled": lambda message: cancelled.append(message["params"]["requestId"]),
    "ping": lambda request: answer(request, {}),
    "tools/list": list_tools,
    "tools/call": call,
}


def hear(message):
    global heard
    heard += 1
    if heard == 1 and "initialize_first" in OPTIONS and message.get("method") != "initialize":
        note("Error: not initialized")
        os._exit(8)
    if "answers_notices" in OPTIONS and "id" not in message:
        write({"id": None, "error": {"code": -32601, "message": "Method not found"}})
    if "method" not in message:
        asked.pop(message["id"], lambda reply: None)(message)
    elif message["method"] in METHODS:
        METHODS[message["method"]](message)
    elif "id" in message:
        fail(message, -32601, "Method not found: " + message["method"])


def run_timers():
    now = time.monotonic()
    for one in [timer for timer in timers if timer[0] <= now]:
        timers.remove(one)
        one[1]()


def serve():
    rest = b""
    while True:
        wait = max(0, min(when for when, _ in timers) - time.monotonic()) if timers else None
        ready = select.select([0], [], [], wait)[0]
        run_timers()
        if not ready:
            continue
        data = os.read(0, 65536)
        if not data:
            if "ignores_eof" in OPTIONS:
                time.sleep(ENDLESS)
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            hear(json.loads(line))


def counted_start():
    """Counts the starts in a file; the first ones may fail."""
    path = OPTIONS["count"]
    with open(path, "a") as file:
        file.write("x")
    if os.path.getsize(path) <= int(OPTIONS.get("fails", 0)):
        note("Error: cannot start yet")
        os._exit(7)


def main():
    if "count" in OPTIONS:
        counted_start()
    if "ignores_term" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "banner" in OPTIONS:
        write_raw("Fake MCP server running on stdio\n")
    if "exit_at_once" in OPTIONS:
        note("Error: Cannot find module 'fake'")
        os._exit(6)
    if "reads_nothing" in OPTIONS:
        time.sleep(ENDLESS)
    serve()


main()
