"""Chaos: one daemon with lying upstreams and Redis, clients that vanish, never read, flood and cancel, and faults all the
time. An oracle accounts for every request: exactly one answer each, none of another's, none to a cancelled one, no budget
exceeded; in the end no descriptor, no child and no memory more than at the beginning.

    python3 tests/clients/chaos.py build/toolgate SECONDS SEED      the seed decides what happens, not when exactly

Ends with `N passed, N failed`. Standard library only, and `cc` for the clock (clock_shift.c). As root it also fills the disk
of the state folder and the decision log. `--serve` is the upstream over stdio, `--serve-http` the one over HTTP.
"""
import asyncio
import http.server
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

CLIENTS = 24
ANSWER_S = 30          # a request without an answer for so long is lost
UPSTREAM_TIMEOUT_S = 3
BUDGET = 5             # calls of `spend` in one session
CLOCK_STEP_S = 3600    # at most, forwards or back
DISK_BYTES = 64 << 20  # of the small disk: all that the decision log keeps (5 MB) fits many times
HTTP_KEPT_MAX = 32     # idle connections (FETCH_IDLE_CONNECTIONS)
HTTP_STALL_S = 5       # longer than the timeout of the upstream
WARM_UP = 0.5          # of the time, before the first quiet moment
REDIS_PAUSE_S = 20     # of the master that is replaced
QUIET_S = 3            # without traffic, before anything is measured
RSS_DRIFT_MAX = 0.02   # of the resident set, from the first quiet moment to the last


# ---- the upstream ------------------------------------------------------------------------

def serve(name):
    """An MCP server over stdio whose tools echo, wait, lie, flood and die."""
    lies = random.Random(name)

    def send(message):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def tool(tool_name):
        return {"name": tool_name, "description": "For chaos.", "inputSchema": {
            "type": "object", "properties": {"token": {"type": "string"}, "ms": {"type": "integer"}}}}

    def call(ident, tool_name, args):
        result = {"content": [{"type": "text", "text": args.get("token", "")}]}
        if tool_name == "slow":
            time.sleep(args.get("ms", 10) / 1000)
        elif tool_name == "die":
            os._exit(1)
        elif tool_name == "lie":
            how = lies.randrange(6)
            if how == 0:
                send({"id": 999999, "result": result})
            elif how == 1:
                send({"id": ident, "result": result})
            elif how == 2:
                sys.stdout.write("{this is no JSON\n")
            elif how == 3:
                send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 10000}})
            elif how == 4:
                for i in range(50):
                    send({"id": "own %d" % i, "method": "ping"})
            elif how == 5:
                return
        send({"id": ident, "result": result})

    for line in sys.stdin:
        message = json.loads(line)
        method, ident = message.get("method"), message.get("id")
        if ident is None or method is None:
            continue
        if method == "initialize":
            send({"id": ident, "result": {"protocolVersion": message["params"]["protocolVersion"],
                                          "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}})
        elif method == "tools/list":
            send({"id": ident, "result": {"tools": [tool(t) for t in ("say", "slow", "die", "lie")]}})
        elif method == "tools/call":
            call(ident, message["params"]["name"], message["params"].get("arguments", {}))
        else:
            send({"id": ident, "error": {"code": -32601, "message": "no such method"}})


class HttpServer(http.server.BaseHTTPRequestHandler):
    """The same over streamable HTTP, as JSON or as a stream of events; it fails, stalls and breaks off in mid-event."""
    protocol_version = "HTTP/1.1"
    lies = random.Random("http")

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answers(405, b"", "text/plain")

    do_DELETE = do_GET

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, ident = message.get("method"), message.get("id")
        if ident is None or method is None:
            return self.answers(202, b"", "text/plain")
        if method == "initialize":
            return self.tells(ident, {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                                      "serverInfo": {"name": "c", "version": "1"}})
        if method == "tools/list":
            return self.tells(ident, {"tools": [
                {"name": name, "description": "For chaos.", "inputSchema": {"type": "object", "properties": {
                    "token": {"type": "string"}, "ms": {"type": "integer"}}}} for name in ("say", "slow", "lie")]})
        if method != "tools/call":
            return self.answers(200, json.dumps({"jsonrpc": "2.0", "id": ident, "error": {
                "code": -32601, "message": "no such method"}}).encode(), "application/json")
        args = message["params"].get("arguments", {})
        result = {"content": [{"type": "text", "text": args.get("token", "")}]}
        if message["params"]["name"] == "slow":
            time.sleep(args.get("ms", 10) / 1000)
        elif message["params"]["name"] == "lie":
            return self.tells_lies(ident, result)
        self.tells(ident, result)

    def tells_lies(self, ident, result):
        how = self.lies.randrange(6)
        if how == 0:
            self.answers(self.lies.choice([500, 503, 429, 404]), b"oh no", "text/plain")
        elif how == 1:
            self.answers(200, b"{this is no JSON", "application/json")
        elif how == 2:
            time.sleep(HTTP_STALL_S)
            self.close_connection = True
        elif how == 3: # broken off in mid-event
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"jsonrpc\":")
            self.close_connection = True
        elif how == 4:
            self.tells(999999, result)
        else:
            self.connection.close()
            self.close_connection = True

    def tells(self, ident, result):
        text = json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}).encode()
        if self.lies.random() < 0.5:
            return self.answers(200, text, "application/json")
        self.answers(200, b"event: message\ndata: " + text + b"\n\n", "text/event-stream")

    def answers(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve_http(port):
    class Server(http.server.ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 256

        def handle_error(self, *_):
            pass

    Server(("127.0.0.1", port), HttpServer).serve_forever()


# ---- the oracle --------------------------------------------------------------------------

class Oracle:
    def __init__(self):
        self.sent = self.answered = self.lost_by_own_fault = self.cancelled = self.budgets = self.whole_budgets = 0
        self.spent_after_loss = [] # of each budget: the calls beyond it
        self.faults, self.wrong = {}, []

    def is_wrong(self, words, *values):
        if len(self.wrong) < 20:
            self.wrong.append(words % values)

    def happened(self, fault):
        self.faults[fault] = self.faults.get(fault, 0) + 1


class Client:
    """A connection. Each request has an id of its own, and its token must come back with its answer."""
    numbers = 0

    def __init__(self, oracle, socket):
        self.oracle, self.socket = oracle, socket
        self.waiting, self.done, self.silent = {}, set(), set()
        self.leaves = False

    async def connects(self):
        self.reader, self.writer = await asyncio.open_unix_connection(self.socket, limit=1 << 26)
        self.task = asyncio.create_task(self.reads())
        return self

    async def reads(self):
        try:
            while line := await self.reader.readline():
                self.hears(json.loads(line))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        for future in self.waiting.values():
            future.cancel()

    def hears(self, message):
        ident = message.get("id")
        if "method" in message or ident is None:
            return
        if ident in self.silent:
            self.oracle.is_wrong("a cancelled request was answered after the cancellation was seen: %r", message)
        if ident in self.done:
            self.oracle.is_wrong("answered twice: %r", message)
        elif ident not in self.waiting:
            self.oracle.is_wrong("an answer to nobody's request: %r", message)
        else:
            self.done.add(ident)
            self.oracle.answered += 1
            self.waiting.pop(ident).set_result(message)

    def sends(self, method, params):
        Client.numbers += 1
        ident = Client.numbers
        future = self.waiting[ident] = asyncio.get_running_loop().create_future()
        self.oracle.sent += 1
        self.writes({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        return ident, future

    def writes(self, message):
        self.writer.write((json.dumps(message) + "\n").encode())

    async def answer(self, future):
        try:
            return await asyncio.wait_for(asyncio.shield(future), ANSWER_S)
        except asyncio.TimeoutError:
            self.oracle.is_wrong("no answer within %d s", ANSWER_S)
        except asyncio.CancelledError:
            if not future.cancelled():
                raise
            self.oracle.is_wrong("the daemon closed the connection of a client that did nothing wrong")
        return None

    async def calls(self, tool, args, meta=None):
        args = dict(args, token="token %d" % random.getrandbits(48))
        _, future = self.sends("tools/call", {"name": tool, "arguments": args, "_meta": meta or {}})
        await self.writer.drain()
        message = await self.answer(future)
        self.checks(tool, args, message)
        return message

    def checks(self, tool, args, message):
        text = json.dumps(message) if message else ""
        if message and "result" not in message and "error" not in message:
            self.oracle.is_wrong("neither a result nor an error: %s", text[:200])
        for token in text.split("token ")[1:]:
            if not ("token " + token).startswith(args["token"]):
                self.oracle.is_wrong("%s heard the token of another call: %s", tool, text[:300])

    async def closes(self):
        """Whoever leaves loses the answers it did not wait for."""
        self.oracle.lost_by_own_fault += len(self.waiting)
        self.task.cancel()
        self.writer.transport.abort()
        await asyncio.sleep(0)


# ---- clients -----------------------------------------------------------------------------

TOOLS = ["a__say", "b__say", "a__slow", "b__slow", "a__lie", "b__lie", "a__die", "c__say", "c__slow", "c__lie", "inside", "strict", "unknown_tool"]


async def works(client, dice):
    for _ in range(dice.randint(1, 10)):
        session = {"dev.toolgate/session": "s%d" % dice.randrange(40), "dev.toolgate/turn": dice.randint(1, 5)}
        await client.calls(dice.choice(TOOLS), {"ms": dice.choice([0, 1, 20, 500])}, session)


async def pipelines(client, dice):
    futures = [client.sends("tools/call", {"name": dice.choice(TOOLS), "arguments": {"ms": 1}})[1]
               for _ in range(dice.randint(20, 200))]
    await client.writer.drain()
    for future in futures:
        await client.answer(future)


async def cancels(client, dice):
    """What is answered after the ping that follows the cancellation comes too late."""
    ident, future = client.sends("tools/call", {"name": "a__slow", "arguments": {"ms": dice.choice([1, 50, 400])}})
    await asyncio.sleep(dice.random() * 0.1)
    client.writes({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}})
    await client.answer(client.sends("ping", {})[1])
    if not future.done():
        client.oracle.cancelled += 1
        client.silent.add(ident)
        client.waiting.pop(ident, None)
        client.oracle.sent -= 1
    await asyncio.sleep(1)


async def checks_and_reports(client, dice):
    _, future = client.sends("toolgate/check", {"name": "inside", "arguments": {"token": "t"}})
    message = await client.answer(future)
    call_id = message and message.get("result", {}).get("callId")
    if call_id and dice.random() < 0.8:
        _, future = client.sends("toolgate/report", {"callId": call_id, "name": "inside", "arguments": {"token": "t"},
                                                     "result": {"ok": True}})
        await client.answer(future)


async def vanishes(client, dice):
    for _ in range(dice.randint(1, 30)):
        client.sends("tools/call", {"name": dice.choice(TOOLS), "arguments": {"ms": 100}})
    client.writer.write(b'{"jsonrpc":"2.0","id":"half')
    await asyncio.sleep(dice.random() * 0.2)


async def never_reads(client, dice):
    """The daemon may close this one: nothing is owed to a client that does not read."""
    client.reader._transport.pause_reading()
    for _ in range(300):
        client.sends("tools/list", {})
    await asyncio.sleep(dice.random() * 3)


async def floods(client, dice):
    for _ in range(dice.randint(1, 200)):
        client.writer.write(dice.choice([b"\n", b"{}\n", b"[1,2\n", b"\x00\xff\xfe\n", b'{"jsonrpc":"2.0","method":"x"}\n',
                                         b'{"a":' * 200 + b"\n"]))
    await client.answer(client.sends("ping", {})[1])


WAYS = [works, works, works, works, pipelines, cancels, checks_and_reports, vanishes, never_reads, floods]


async def lives(world, number):
    dice = random.Random("%s client %d" % (world.seed, number))
    while not world.stops:
        await world.goes_on.wait()
        world.busy += 1
        try:
            client = await Client(world.oracle, world.socket).connects()
            try:
                await dice.choice(WAYS)(client, dice)
            finally:
                await client.closes()
        except ConnectionError:
            pass
        finally:
            world.busy -= 1
        await asyncio.sleep(dice.random() * 0.05)


async def spends(world):
    """Four clients of one session want more calls than its budget has."""
    number, dice = 0, random.Random("%s budget" % world.seed)
    while not world.stops:
        await world.goes_on.wait()
        world.busy += 1
        number += 1
        flushed = world.flushes
        clients = [await Client(world.oracle, world.socket).connects() for _ in range(4)]
        meta = {"dev.toolgate/session": "budget %d" % number, "dev.toolgate/turn": 1}

        async def some(client):
            return [json.dumps(await client.calls("spend", {"ms": i}, meta)) for i in range(4)]

        heard = sum(await asyncio.gather(*(some(client) for client in clients)), [])
        spent = sum("spent" in one for one in heard)
        refused = sum("calls_per_session" in one for one in heard)
        losses = (world.flushes + 1) // 2 - flushed // 2 # of Redis' memory while this budget was spent
        if losses:
            world.oracle.spent_after_loss.append(spent - min(spent, BUDGET))
            if spent > BUDGET * (1 + losses):
                world.oracle.is_wrong("budget %d: %d calls passed, and Redis lost %d only %d times", number, spent, BUDGET, losses)
        else:
            world.oracle.budgets += 1
            whole = spent + refused == len(heard) # and no call found Redis away
            world.oracle.whole_budgets += whole
            if spent > BUDGET or whole and spent < BUDGET:
                world.oracle.is_wrong("budget %d: %d calls of %d passed, %d were refused", number, spent, BUDGET, refused)
        for client in clients:
            await client.closes()
        world.busy -= 1
        await asyncio.sleep(dice.random())


# ---- faults ------------------------------------------------------------------------------

INSIDE = """-- %s: runs here.
return tool "%s" {
  description = "For chaos.", effects = "read", %s
  schema = params({ token = optional(str "Text"), ms = optional(int "Milliseconds") }),
  run = function(args) return { spent = args.token } end,
}
"""
STRICT = 'rules = { when { absent = "token" } : refuses "no token" },'


REDIS = ("redis_a", "redis_b") # the one is the other's replica


def free_port():
    """None of those that the kernel gives to connections: a server that was killed must get its port again."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class World:
    def __init__(self, binary, seed):
        self.binary, self.seed = os.path.abspath(binary), seed
        self.folder = tempfile.mkdtemp(prefix="toolgate-chaos-")
        self.socket = self.folder + "/toolgate.sock"
        self.oracle = Oracle()
        self.flushes = self.busy = 0
        self.disk = self.path("disk")
        self.has_disk = False
        self.http_port = free_port()
        self.redis_ports = {name: free_port() for name in REDIS}
        self.master, self.redis, self.http, self.daemon = REDIS[0], {}, None, None
        self.stops = self.is_well = False
        self.goes_on = asyncio.Event()

    def path(self, name):
        return os.path.join(self.folder, name)

    def writes(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def starts_redis(self, name):
        """As the replica of the other one, unless it is the master. Replicas find each other by port only."""
        folder = self.path(name)
        os.makedirs(folder, exist_ok=True)
        follows = [] if name == self.master else ["--replicaof", "127.0.0.1 %d" % self.redis_ports[self.master]]
        self.redis[name] = subprocess.Popen(
            ["redis-server", "--port", str(self.redis_ports[name]), "--bind", "127.0.0.1", "--unixsocket",
             self.redis_socket(name), "--dir", folder, "--appendonly", "yes", "--appendfsync", "always", "--save", "",
             "--repl-diskless-sync-delay", "0", *follows], stdout=subprocess.DEVNULL)

    def redis_socket(self, name):
        return self.path(name + "/socket")

    def leads_to_the_master(self):
        """The daemon's address of Redis is a link: it moves with the master, as a floating address does."""
        os.symlink(self.redis_socket(self.master), self.path("redis.new"))
        os.rename(self.path("redis.new"), self.path("redis.sock"))

    def promotes(self, name):
        self.master = name
        self.redis_cli("replicaof", "no", "one")
        self.leads_to_the_master()

    def replica(self):
        return next(name for name in REDIS if name != self.master)

    def starts_http(self):
        self.http = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve-http", str(self.http_port)],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def mounts_disk(self):
        os.mkdir(self.disk, 0o700)
        self.has_disk = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=%d,mode=700" % DISK_BYTES, "tmpfs", self.disk],
            stderr=subprocess.DEVNULL).returncode == 0
        if not self.has_disk:
            print("  skipped: a full disk (only root may mount a small one)")
            self.FAULTS = [fault for fault in self.FAULTS if fault != "fills_the_disk"]

    def sets_clock(self, seconds):
        with open(self.path("clock"), "r+b") as file:
            file.write(struct.pack("q", seconds))

    def builds_clock(self):
        with open(self.path("clock"), "wb") as file:
            file.write(struct.pack("q", 0))
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support/clock_shift.c")
        subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", self.path("clock_shift.so"), source, "-ldl"],
                       check=True)
        return {"LD_PRELOAD": self.path("clock_shift.so"), "CLOCK_SHIFT": self.path("clock")}

    def starts(self):
        os.mkdir(self.path("policies"))
        self.mounts_disk()
        os.mkdir(self.path("disk/state"), 0o700)
        for name, more in (("inside", ""), ("spend", "limits = { calls_per_session = %d }," % BUDGET)):
            self.writes("policies/%s.lua" % name, INSIDE % (name, name, more))
        self.writes("policies/strict.lua", INSIDE % ("strict", "strict", ""))
        command = '{ command = "%s", args = { "%s", "--serve", "%s" }, timeout = "%ds" }'
        self.writes("toolgate.lua", """return {
  socket = "%s", policies = "%s/policies", state = "%s/disk/state",
  ledger = { redis = "unix:%s/redis.sock", on_outage = "closed", timeout_ms = 200 },
  decisions = { file = "%s/disk/decisions.ndjson", max_mb = 1, keep = 2 },
  upstreams = { a = %s, b = %s, c = { url = "http://127.0.0.1:%d/mcp", prefix = "always", timeout = "%ds" } },
}
""" % (self.socket, self.folder, self.folder, self.folder, self.folder,
            command % (sys.executable, os.path.abspath(__file__), "a", UPSTREAM_TIMEOUT_S),
            command % (sys.executable, os.path.abspath(__file__), "b", UPSTREAM_TIMEOUT_S),
            self.http_port, UPSTREAM_TIMEOUT_S))
        for name in REDIS:
            self.starts_redis(name)
        self.leads_to_the_master()
        self.starts_http()
        self.log = open(self.path("log"), "w")
        self.daemon = subprocess.Popen([self.binary, "serve", "-c", self.path("toolgate.lua")], stderr=self.log,
                                       env={**os.environ, **self.builds_clock()})

    def children(self):
        path = "/proc/%d/task/%d/children" % (self.daemon.pid, self.daemon.pid)
        return [int(pid) for pid in open(path).read().split()]

    def zombies(self):
        states = []
        for pid in self.children():
            try:
                states.append(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0])
            except FileNotFoundError:
                pass
        return states.count("Z")

    def descriptors(self):
        """Without the connections to the HTTP upstream that are kept for the next call: those are `kept`."""
        return len(os.listdir("/proc/%d/fd" % self.daemon.pid)) - self.kept()

    def kept(self):
        ours = set()
        for fd in os.listdir("/proc/%d/fd" % self.daemon.pid):
            try:
                ours.add(os.readlink("/proc/%d/fd/%s" % (self.daemon.pid, fd)))
            except FileNotFoundError:
                pass
        lines = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
        return sum(1 for line in lines
                   if line[2].endswith(":%04X" % self.http_port) and "socket:[%s]" % line[9] in ours)

    def rss_kib(self):
        for line in open("/proc/%d/status" % self.daemon.pid):
            if line.startswith("VmRSS:"):
                return int(line.split()[1])

    def redis_cli(self, *words, at=None):
        return subprocess.run(["redis-cli", "-s", self.redis_socket(at or self.master), *words], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=10).stdout.decode()

    def ends_redis(self, name):
        self.redis[name].kill()
        self.redis[name].wait()

    # Each fault is over when its function returns.

    async def kills_an_upstream(self, dice):
        for pid in dice.sample(self.children(), min(1, len(self.children()))):
            os.kill(pid, signal.SIGKILL)

    async def stops_an_upstream(self, dice):
        children = self.children()
        if not children:
            return
        pid = dice.choice(children)
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(dice.random() * 2)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    async def kills_redis(self, dice):
        self.ends_redis(self.master)
        await asyncio.sleep(dice.random())
        self.starts_redis(self.master)

    async def stops_redis(self, dice):
        self.redis[self.master].send_signal(signal.SIGSTOP)
        await asyncio.sleep(dice.random())
        self.redis[self.master].send_signal(signal.SIGCONT)

    def has_caught_up(self):
        """The master is paused, so its offset does not grow but by its pings to the replica."""
        def tells(name):
            text = self.redis_cli("info", "replication", at=name)
            return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

        told = [tells(self.master), tells(self.replica())]
        return (told[1].get("master_link_status") == "up" and "master_repl_offset" in told[0] and
                int(told[1]["slave_repl_offset"]) >= int(told[0]["master_repl_offset"]))

    async def replaces_redis(self, _):
        """As docs/scaling.md says: pause the master, wait for the replica. Then nothing is lost, and all budgets hold."""
        old = self.master
        await asyncio.to_thread(self.redis_cli, "client", "pause", str(REDIS_PAUSE_S * 1000), "write")
        end = time.monotonic() + REDIS_PAUSE_S / 2
        while not await asyncio.to_thread(self.has_caught_up):
            if time.monotonic() > end:
                self.oracle.happened("(replica too late to replace the master)")
                await asyncio.to_thread(self.redis_cli, "client", "unpause")
                return
            await asyncio.sleep(0.02)
        await asyncio.to_thread(self.promotes, self.replica())
        self.ends_redis(old)
        self.starts_redis(old)

    async def loses_redis(self, dice):
        """The master dies and the replica takes over: what it had not received is lost, and spent once more."""
        old = self.master
        self.flushes += 2
        self.ends_redis(old)
        await asyncio.sleep(dice.random())
        await asyncio.to_thread(self.promotes, self.replica())
        self.starts_redis(old)

    async def flushes_redis(self, _):
        self.flushes += 1
        await asyncio.to_thread(self.redis_cli, "flushall")
        self.flushes += 1 # odd while it lasts: a session may begin and end meanwhile

    async def fills_redis(self, dice):
        await asyncio.to_thread(self.redis_cli, "config", "set", "maxmemory", "1mb")
        await asyncio.sleep(dice.random())
        await asyncio.to_thread(self.redis_cli, "config", "set", "maxmemory", "0")

    async def reloads(self, dice):
        for _ in range(dice.randint(1, 20)):
            rules = dice.choice(["", STRICT, "this is no Lua"])
            self.writes("policies/strict.lua", INSIDE % ("strict", "strict", rules))
            self.daemon.send_signal(signal.SIGHUP)
            await asyncio.sleep(dice.random() * 0.05)
        self.writes("policies/strict.lua", INSIDE % ("strict", "strict", ""))
        self.daemon.send_signal(signal.SIGHUP)

    async def loses_the_decision_log(self, _):
        os.rename(self.path("disk/decisions.ndjson"), self.path("disk/decisions.gone"))
        self.daemon.send_signal(signal.SIGUSR1)

    async def kills_the_http_upstream(self, dice):
        self.http.kill()
        self.http.wait()
        await asyncio.sleep(dice.random())
        self.starts_http()

    async def stops_the_http_upstream(self, dice):
        self.http.send_signal(signal.SIGSTOP)
        await asyncio.sleep(dice.random() * 2)
        self.http.send_signal(signal.SIGCONT)

    async def steps_the_clock(self, dice):
        """And perhaps back again: budgets and time limits must survive both."""
        self.sets_clock(dice.randint(-CLOCK_STEP_S, CLOCK_STEP_S))
        await asyncio.sleep(dice.random())
        if dice.random() < 0.5:
            self.sets_clock(0)

    def decision_log(self):
        """What its file says in status: its state, and the bytes that wait for it."""
        status = subprocess.run([self.binary, "status", "--socket", self.socket, "--json"], stdout=subprocess.PIPE, timeout=10)
        sink = json.loads(status.stdout)["decisions"]["sinks"][0]
        return "%s, %d bytes are waiting" % (sink["state"], sink["waiting_bytes"])

    async def fills_the_disk(self, dice):
        try:
            with open(self.path("disk/filler"), "wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 65536)
        except OSError:
            pass
        await asyncio.sleep(dice.random())
        os.unlink(self.path("disk/filler"))

    FAULTS = ["kills_an_upstream", "stops_an_upstream", "kills_redis", "stops_redis", "flushes_redis", "fills_redis",
              "replaces_redis", "loses_redis", "reloads", "loses_the_decision_log", "kills_the_http_upstream", "stops_the_http_upstream", "steps_the_clock",
              "fills_the_disk"]

    async def goes_wrong(self):
        dice = random.Random("%s faults" % self.seed)
        while not self.stops:
            await self.goes_on.wait()
            self.busy += 1
            fault = dice.choice(self.FAULTS)
            self.oracle.happened(fault)
            try:
                await getattr(self, fault)(dice)
            except (FileNotFoundError, ProcessLookupError, subprocess.TimeoutExpired):
                pass
            self.busy -= 1
            await asyncio.sleep(dice.random())

    # ---- measuring ----

    async def until(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if self.daemon.poll() is not None or time.monotonic() > end:
                raise SystemExit("chaos: %s (daemon: %s; log: %s)" % (what, self.daemon.poll(), self.path("log")))
            await asyncio.sleep(0.05)

    async def goes_wild(self, seconds):
        self.goes_on.set()
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.daemon.poll() is None:
            await asyncio.sleep(0.2)

    async def is_quiet(self):
        self.goes_on.clear()
        await self.until("the clients do not end", lambda: self.busy == 0, 2 * ANSWER_S + 10)
        client = await Client(self.oracle, self.socket).connects()
        for _ in range(700): # upstreams that were killed are there again; a circuit may be open for a minute
            names = ["a__say", "b__say", "c__say"]
            heard = [json.dumps(await client.calls(name, {})) for name in names]
            if all("token " in one for one in heard):
                break
            await asyncio.sleep(0.1)
        await client.closes()
        await asyncio.sleep(QUIET_S)
        return {"descriptors": self.descriptors(), "kept": self.kept(), "children": len(self.children()), "zombies": self.zombies(),
                "rss": self.rss_kib()}


async def plays(binary, seconds, seed):
    world = World(binary, seed)
    try:
        return await plays_in(world, seconds, seed)
    finally:
        for process in filter(None, (world.daemon, *world.redis.values(), world.http)):
            process.kill()
            process.wait()
        if world.has_disk:
            subprocess.run(["umount", world.disk])
        if world.is_well:
            shutil.rmtree(world.folder)


async def plays_in(world, seconds, seed):
    world.starts()
    passed = failed = 0

    def tally(good, text, *values):
        nonlocal passed, failed
        passed, failed = passed + bool(good), failed + (not good)
        print("  %s - %s" % ("ok" if good else "not ok", text % values), flush=True)

    print("chaos: %d s, seed %s" % (seconds, seed), flush=True)
    await world.until("the daemon does not start", lambda: os.path.exists(world.socket))
    tasks = [asyncio.create_task(lives(world, n)) for n in range(CLIENTS)]
    tasks += [asyncio.create_task(spends(world)), asyncio.create_task(world.goes_wrong())]
    await world.goes_wild(seconds * WARM_UP)
    first = await world.is_quiet()
    await world.goes_wild(seconds * (1 - WARM_UP)) # is_quiet may have waited a minute for an upstream
    last = await world.is_quiet()
    world.stops = True
    world.goes_on.set()
    for task in tasks:
        task.cancel()
    oracle = world.oracle
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception():
            oracle.is_wrong("the test itself: %r", task.exception())
    print("  %d requests, %d answers, %d were not waited for, %d cancelled; faults: %s" % (
        oracle.sent, oracle.answered, oracle.lost_by_own_fault, oracle.cancelled,
        ", ".join("%s %d" % one for one in sorted(oracle.faults.items()))))
    tally(not oracle.wrong, "every request had exactly one answer, its own%s", "".join("\n      " + w for w in oracle.wrong))
    tally(oracle.sent == oracle.answered + oracle.lost_by_own_fault, "the requests add up")
    tally(oracle.whole_budgets > 0, "%d budgets held, %d of them without an outage: spent to the last call", oracle.budgets,
          oracle.whole_budgets)
    again = oracle.spent_after_loss
    print("  %d budgets met a Redis that lost what it knew: of them %d were exceeded, by %d calls in all and %d at most" % (
        len(again), sum(n > 0 for n in again), sum(again), max(again, default=0)))
    tally(last["descriptors"] <= first["descriptors"] + 1, "descriptors: %d, then %d", first["descriptors"],
          last["descriptors"])
    tally(last["kept"] <= HTTP_KEPT_MAX, "kept connections to the HTTP upstream: %d, then %d", first["kept"], last["kept"])
    tally(last["children"] == first["children"] and not last["zombies"], "children: %d, then %d", first["children"],
          last["children"])
    drift = last["rss"] / first["rss"] - 1
    tally(drift <= RSS_DRIFT_MAX, "resident set: %d KiB, then %d KiB (%+.1f %%)", first["rss"], last["rss"], drift * 100)
    decisions = await asyncio.to_thread(world.decision_log)
    tally(decisions == "up, 0 bytes are waiting", "decision log: %s", decisions)
    children = world.children()
    world.daemon.send_signal(signal.SIGTERM)
    tally(await asyncio.to_thread(world.daemon.wait, 30) == 0, "the daemon stopped when it was told to")
    left = [pid for pid in children if os.path.exists("/proc/%d" % pid)]
    tally(not left, "and left %d of its %d children", len(left), len(children))
    if failed:
        print("  kept: %s" % world.folder)
    world.is_well = not failed
    print("%d passed, %d failed" % (passed, failed))
    return failed


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    elif sys.argv[1] == "--serve-http":
        serve_http(int(sys.argv[2]))
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("chaos: ended by SIGTERM"))
        sys.exit(asyncio.run(plays(sys.argv[1], float(sys.argv[2]), sys.argv[3])) > 0)
