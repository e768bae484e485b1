"""An HTTP server with configured answers, which misbehaves on demand. Standard library only.

    python3 http_server.py DIRECTORY [tls]

DIRECTORY/routes.json, read for each request, maps "GET /path" (without the query) to a list of answers; the n-th
request gets the n-th, the last is repeated. An answer is an object:

    status, headers, body (a string, or any JSON)   Content-Length is added unless another key changes it
    echo: true          the body has the request's method, path, query, headers and body
    raw: "…"            these bytes instead of an answer
    hints: N            N heads of 103 Early Hints before the answer, of 60,000 bytes each
    announce: N         Content-Length is N, independent of the body
    headers_slowly: s   one byte of the head every s seconds, until the client disconnects
    hang: true          no answer until the client disconnects
    close: true         closes the connection afterwards, without announcing it; "reset": with RST
    fill: N             the body is a JSON string of N bytes "x"
    pieces: […]         the body, chunked, in these pieces; a number among them is a pause in seconds,
                        "CUT" ends the connection there, "HOLD" keeps it open until the client disconnects, which
                        adds the line {"gone": true} to seen.jsonl; "WAIT" waits until DIRECTORY/go exists

POST /mcp etc. with {"mcp": {…}} as the answer is an MCP server (see mcp below).

DIRECTORY/port has the port once it accepts; DIRECTORY/seen.jsonl gets one line per request, with the number of its
connection.
"""
import base64
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

directory = sys.argv[1]
lock = threading.Lock()
counts = {}
connections = 0
sessions = {}


def note(entry):
    with lock, open(directory + "/seen.jsonl", "a", encoding="utf-8") as seen:
        seen.write(json.dumps(entry) + "\n")


def next_answer(key):
    with open(directory + "/routes.json", encoding="utf-8") as file:
        answers = json.load(file).get(key)
    if not answers:
        return {"status": 404, "body": {"error": {"message": "nothing is at " + key}}}
    with lock:
        n = counts[key] = counts.get(key, 0) + 1
    return answers[min(n, len(answers)) - 1]


class Request:
    def __init__(self, method, target, headers, body, connection):
        self.method, self.target, self.headers, self.body, self.connection = method, target, headers, body, connection
        self.path, _, self.query = target.partition("?")


def read_request(stream, connection):
    line = stream.readline(65536).decode("latin-1").strip()
    if not line:
        return None
    method, target, _ = line.split(" ", 2)
    headers = {}
    while True:
        line = stream.readline(65536).decode("latin-1").strip()
        if not line:
            break
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", 0))).decode("utf-8")
    return Request(method, target, headers, body, connection)


def echo(request):
    try:
        body = json.loads(request.body) if request.body else None
    except ValueError:
        body = request.body
    return {"method": request.method, "path": request.path, "query": request.query, "headers": request.headers,
            "body": body}


def until_gone(client):
    client.settimeout(30)
    try:
        while client.recv(4096):
            pass
    except OSError:
        pass


def head_of(status, headers):
    lines = ["HTTP/1.1 %d Told" % status] + ["%s: %s" % pair for pair in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def send_pieces(client, pieces):
    """True: the connection may be used for another request."""
    for piece in pieces:
        if piece == "CUT":
            return False
        if piece == "HOLD":
            until_gone(client)
            return False
        while piece == "WAIT" and not os.path.exists(directory + "/go"):
            time.sleep(0.01)
        if piece == "WAIT":
            continue
        if isinstance(piece, (int, float)):
            time.sleep(piece)
            continue
        data = piece.encode("utf-8")
        client.sendall(b"%x\r\n%s\r\n" % (len(data), data))
    client.sendall(b"0\r\n\r\n")
    return True


def send_answer(client, request, answer):
    """True: the connection may be used for another request."""
    if answer.get("hang"):
        until_gone(client)
        return False
    if "raw" in answer:
        client.sendall(answer["raw"].encode("latin-1"))
        return False
    if answer.get("reset"):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    body = echo(request) if answer.get("echo") else answer.get("body", "")
    headers = {}
    if not isinstance(body, str):
        body = json.dumps(body)
        headers["Content-Type"] = "application/json"
    if "fill" in answer:
        body = json.dumps("x" * answer["fill"])
    headers.update(answer.get("headers", {}))
    data = body.encode("utf-8")
    if "pieces" in answer:
        headers["Transfer-Encoding"] = "chunked"
    elif answer.get("status") != 204:
        headers["Content-Length"] = str(answer.get("announce", len(data)))
    head = head_of(answer.get("status", 200), headers)
    if "headers_slowly" in answer:
        for byte in head:
            client.sendall(bytes([byte]))
            time.sleep(answer["headers_slowly"])
    if "HOLD" in answer.get("pieces", []):
        try: # the client may be gone before it has heard the first piece
            client.sendall(head)
            send_pieces(client, answer["pieces"])
        except OSError:
            pass
        note({"gone": True})
        return False
    for _ in range(answer.get("hints", 0)):
        client.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 60000 + b"\r\n\r\n")
    client.sendall(head)
    if "pieces" in answer:
        return send_pieces(client, answer["pieces"])
    if request.method != "HEAD" and answer.get("status") != 204:
        client.sendall(data)
    return not answer.get("close") and "announce" not in answer


# ---- an MCP server --------------------------------------------------------------------------------------------------
# {"mcp": {"era": "legacy" | "modern", "answers": "json" | "sse" | "sse, not ended", "session": true, "token": "Bearer …",
#          "listens": [pieces of the GET stream], "tools": […], "tools_file": a JSON file, "forget_after": n calls, "lost": answer,
#          "cancelled": the answer to each cancellation,
#          "calls": {text: answer}}}: a tool's _meta may have its `answer` or `error`; the answer to a call with this text; "ID" is replaced by its id, and within
# pieces TOKEN by its progress token and ANSWER by the normal answer.

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
TOOLS = [{"name": "say", "description": "Says a text back.", "annotations": {"readOnlyHint": True},
          "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}]


def decoded(value):
    if value and value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2]).decode("utf-8")
    return value


def modern_trouble(request, message):
    """The reason why a server of 2026-07-28 rejects this request; None: it does not."""
    meta = message.get("params", {}).get("_meta", {})
    if "mcp-session-id" in request.headers:
        return "there are no sessions any more"
    if request.headers.get("mcp-protocol-version") != MODERN or meta.get(META + "protocolVersion") != MODERN:
        return "MCP-Protocol-Version is missing or another"
    if request.headers.get("mcp-method") != message["method"]:
        return "Mcp-Method is missing or another"
    if message["method"] == "tools/call" and decoded(request.headers.get("mcp-name")) != message["params"]["name"]:
        return "Mcp-Name is missing or another"
    return None


def error(message, code, text):
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}


def tools_of(options):
    if "tools_file" not in options:
        return options.get("tools", TOOLS)
    with open(options["tools_file"], encoding="utf-8") as file:
        return json.load(file)


def result_of(message, options, request):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": LEGACY, "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "fake", "version": "1"}}
    if method == "server/discover":
        return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/list":
        return {"tools": tools_of(options), "ttlMs": 0, "cacheScope": "private"}
    text = params.get("arguments", {}).get("text", "")
    for tool in tools_of(options):
        if tool["name"] == params.get("name") and "answer" in tool.get("_meta", {}):
            return tool["_meta"]["answer"]
    if text == "what did I send?":
        text = json.dumps(request.headers)
    return {"content": [{"type": "text", "text": "said " + text}]}


def session_trouble(request, message, options):
    if not options.get("session") or message.get("method") == "initialize":
        return None
    name = request.headers.get("mcp-session-id")
    with lock:
        if name not in sessions:
            lost = json.dumps(options.get("lost", {"status": 404, "body": error(message, -32001, "Session not found")}))
            number = json.dumps(message.get("id"))
            return json.loads(lost.replace('\\"ID\\"', number).replace('"ID"', number))
        sessions[name] += message.get("method") == "tools/call"
        if message.get("method") == "tools/call" and sessions[name] == options.get("forget_after"):
            sessions.pop(name)
    return None


def mcp_get(request, options):
    if options.get("era") == "modern" or "listens" not in options:
        return {"status": 405}
    with lock:
        n = counts["listens"] = counts.get("listens", 0) + 1
    streams = options["listens"]
    return {"headers": {"Content-Type": "text/event-stream"}, "pieces": streams[min(n, len(streams)) - 1]}


def mcp(request, options):
    """The answer, as in routes.json."""
    if options.get("token") and request.headers.get("authorization") != options["token"]:
        return {"status": 401, "body": error({}, -32000, "who are you? not " + str(request.headers.get("authorization")))}
    if request.method == "GET":
        return mcp_get(request, options)
    if request.method == "DELETE":
        return {"status": 200}
    message = json.loads(request.body)
    modern = options.get("era") == "modern"
    if modern and message.get("method") == "initialize":
        return {"status": 400, "body": error(message, -32022, "only " + MODERN)}
    trouble = modern and modern_trouble(request, message)
    if trouble:
        return {"status": 400, "body": error(message, -32020, trouble)}
    lost = None if modern else session_trouble(request, message, options)
    if lost:
        return lost
    if message.get("method") == "notifications/cancelled" and "cancelled" in options:
        return options["cancelled"]
    if "id" not in message or "method" not in message:
        return {"status": 202}
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result_of(message, options, request)}
    for tool in tools_of(options):
        if message["method"] == "tools/call" and tool["name"] == message["params"]["name"] and "error" in tool.get("_meta", {}):
            return {"body": {"jsonrpc": "2.0", "id": message["id"], "error": tool["_meta"]["error"]}}
    if modern:
        answer["result"]["resultType"] = "complete"
    headers = {}
    if options.get("session") and message["method"] == "initialize":
        with lock:
            name = "session-%d" % (len(sessions) + counts.setdefault("sessions", 0) + 1)
            counts["sessions"] += 1
            sessions[name] = 0
        headers["Mcp-Session-Id"] = name
    calls = options.get("calls", {}).get(message.get("params", {}).get("arguments", {}).get("text", ""))
    if calls:
        text = json.dumps(calls).replace('"ID"', json.dumps(message["id"]))
        token = message["params"].get("_meta", {}).get("progressToken")
        text = text.replace('\\"TOKEN\\"', json.dumps(token).replace('"', '\\"'))
        return json.loads(text.replace("ANSWER", json.dumps(json.dumps(answer))[1:-1]))
    if options.get("answers", "").startswith("sse"):
        end = "\r\n\r\n" if options["answers"] == "sse" else ""
        headers["Content-Type"] = "text/event-stream"
        return {"headers": headers, "pieces": [": hello\n\n", "event: message\r\ndata: " + json.dumps(answer) + end]}
    return {"headers": headers, "body": answer}


# ---- connections ----------------------------------------------------------------------------------------------------

def serve(client, number):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = client.makefile("rb")
    try:
        while True:
            request = read_request(stream, number)
            if not request:
                break
            answer = next_answer(request.method + " " + request.path)
            note(dict(echo(request), connection=number))
            if "mcp" in answer:
                answer = mcp(request, answer["mcp"])
            if not send_answer(client, request, answer):
                break
    except (OSError, ValueError):
        pass
    finally:
        stream.close()
        client.close()


def certificate():
    """A self-signed certificate for localhost."""
    path = directory + "/server.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", path + ".key", "-out", path],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, path + ".key")
    return context


def main():
    global connections
    context = certificate() if "tls" in sys.argv[2:] else None
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    with open(directory + "/port.new", "w", encoding="utf-8") as file:
        file.write(str(listener.getsockname()[1]))
    os.rename(directory + "/port.new", directory + "/port")
    while True:
        client, _ = listener.accept()
        connections += 1
        threading.Thread(target=accept, args=(client, context, connections), daemon=True).start()


def accept(client, context, number):
    try:
        if context:
            client = context.wrap_socket(client, server_side=True)
    except OSError:
        client.close()
        return
    serve(client, number)


main()
