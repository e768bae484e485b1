"""An MCP server over stdio whose tool `reach` tries one thing and reports "ok" or the error's name. Standard library only."""
import ctypes
import errno
import json
import os
import signal
import socket
import sys


def connect_unix(path):
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect(path)


def connect_tcp(port):
    socket.create_connection(("127.0.0.1", int(port)), 5).close()


def send_datagram(path):
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"READY=1", path)


def io_uring(_):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, 1, ctypes.create_string_buffer(256)) < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")


def no_new_privs(_):
    if "NoNewPrivs:\t1" not in open("/proc/self/status").read():
        raise OSError(errno.EPERM, "")


def read(path):
    with open(path) as file:
        file.read()


def write(path):
    with open(path, "w") as file:
        file.write("written")


def escape(path):
    """Leaves its parent and its process group, and stays."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for descriptor in range(3):
                os.close(descriptor)
            with open(path, "w") as file:
                file.write(str(os.getpid()))
            signal.pause()
        os._exit(0)


WAYS = {
    "read": read,
    "write": write,
    "list": os.listdir,
    "remove": os.unlink,
    "truncate": lambda path: os.truncate(path, 0),
    "execute": lambda path: os.spawnv(os.P_WAIT, path, [path]),
    "kill": lambda pid: os.kill(int(pid), 0),
    "environ": lambda pid: read("/proc/%s/environ" % pid),
    "unix": connect_unix,
    "tcp": connect_tcp,
    "datagram": send_datagram,
    "io_uring": io_uring,
    "escape": escape,
    "same": lambda pair: os.environ[pair.split("=")[0]] == pair.split("=")[1] or os.stat("/no/such/file"),
    "environment": lambda name: os.environ[name],
    "descriptor": lambda fd: os.fstat(int(fd)),
    "no_new_privs": no_new_privs,
}


def reach(how, what):
    try:
        code = WAYS[how](what)
        return str(code) if how == "execute" else "ok"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except KeyError:
        return "unset"


TOOL = {"name": "reach", "description": "Tries to reach something.",
        "inputSchema": {"type": "object", "properties": {"how": {"type": "string"}, "what": {"type": "string"}},
                        "required": ["how", "what"]}}

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "reaching", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        given = request["params"]["arguments"]
        result = {"content": [{"type": "text", "text": reach(given["how"], given["what"])}]}
    elif "id" in request:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"],
                                     "error": {"code": -32601, "message": "no such method"}}) + "\n")
        sys.stdout.flush()
        continue
    else:
        continue
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
    sys.stdout.flush()
