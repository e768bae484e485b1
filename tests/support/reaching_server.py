"""An MCP server over stdio whose tool `reach` tries one thing and reports "ok" or the error's name. Standard library only."""
import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading


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


def chmod_at(path):
    """By fchmodat2, which takes a descriptor that Landlock lets anybody have."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(452, os.open(path, os.O_PATH), b"", 0o777, 0x1000) < 0:  # AT_EMPTY_PATH
        raise OSError(ctypes.get_errno(), "fchmodat2")


def chmod_own(path):
    """Of a file that it may open."""
    with open(path, "w") as file:
        os.fchmod(file.fileno(), 0o640)


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


# By number, as libc has no function for them: on x86_64 and, from Linux 5.1 on, on all machines with the common table.
X86 = os.uname().machine == "x86_64"
NUMBERS = {"ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239), "kcmp": (312, 272),
           "sched_setattr": (314, 274), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
           "rt_tgsigqueueinfo": (297, 240), "ptrace": (101, 117), "process_vm_readv": (310, 270), "clone": (56, 220),
           "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "prlimit64": (302, 261),
           "pidfd_send_signal": (424, 424), "process_madvise": (440, 440), "pidfd_open": (434, 434),
           "setpriority": (141, 140), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
           "sched_setaffinity": (203, 122), "unshare": (272, 97), "setns": (308, 268)}
ZEROS, ONES = ctypes.create_string_buffer(256), ctypes.create_string_buffer(b"\xff" * 256)


def system_call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(NUMBERS[name][0 if X86 else 1],
                          *[ctypes.c_long(one) if isinstance(one, int) else one for one in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def meddle(what):
    """One system call on the process of this pid: "CALL PID". None of them would end it, were it allowed."""
    name, pid = what.split()
    pid = int(pid)
    no_limit = ctypes.create_string_buffer(b"\0\0\0\0\0\0\0\0" + b"\xff" * 8)  # soft 0
    attributes = ctypes.create_string_buffer(b"\x30\0\0\0\x03\0\0\0" + b"\0" * 40)  # SCHED_BATCH
    one_page, status = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
    calls = {
        "prlimit64": lambda: system_call(name, pid, 4, no_limit, 0),  # RLIMIT_CORE
        "read_limit": lambda: system_call("prlimit64", pid, 1, 0, ONES),
        "sched_setscheduler": lambda: system_call(name, pid, 3, ZEROS),
        "sched_setparam": lambda: system_call(name, pid, ZEROS),
        "sched_setattr": lambda: system_call(name, pid, attributes, 0),
        "sched_setaffinity": lambda: system_call(name, pid, 128, ONES),
        "setpriority": lambda: system_call(name, 0, pid, 19),
        "setpriority_of_user": lambda: system_call("setpriority", 2, 0, 19),
        "ioprio_set": lambda: system_call(name, 1, pid, 3 << 13),
        "ioprio_set_of_user": lambda: system_call("ioprio_set", 3, 0, 3 << 13),
        "migrate_pages": lambda: system_call(name, pid, 8, ONES, ONES),
        "move_pages": lambda: system_call(name, pid, 1, one_page, 0, status, 2),
        "kcmp": lambda: system_call(name, pid, os.getpid(), 0, 0, 0),
        "kill": lambda: os.kill(pid, 0),
        "tkill": lambda: system_call(name, pid, 0),
        "tgkill": lambda: system_call(name, pid, pid, 0),
        "rt_sigqueueinfo": lambda: system_call(name, pid, signal.SIGCONT, queued),
        "rt_tgsigqueueinfo": lambda: system_call(name, pid, pid, signal.SIGCONT, queued),
        "pidfd_send_signal": lambda: system_call(name, system_call("pidfd_open", pid, 0), 0, 0, 0),
        "process_madvise": lambda: system_call(name, system_call("pidfd_open", pid, 0), ZEROS, 1, 21, 0),
        "ptrace": lambda: system_call(name, 0x4206, pid, 0, 0),  # PTRACE_SEIZE
        "process_vm_readv": lambda: system_call(name, pid, ZEROS, 1, ZEROS, 1, 0),
        "f_setown": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, pid),
        "fiosetown": lambda: fcntl.ioctl(0, 0x8901, struct.pack("i", pid)),
        "clone_parent": lambda: system_call("clone", 0x8000, 0, 0, 0, 0) or os._exit(0),
        "clone_user": lambda: system_call("clone", 0x10000011, 0, 0, 0, 0) or os._exit(0),
        "clone_pid": lambda: system_call("clone", 0x20000011, 0, 0, 0, 0) or os._exit(0),
        "unshare": lambda: system_call(name, 0x10000000),
        "shmget": lambda: system_call(name, 0, 4096, 0o1600),
        "msgget": lambda: system_call(name, 0, 0o1600),
        "semget": lambda: system_call(name, 0, 1, 0o1600),
        "raw_pair": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW),
    }
    queued = ctypes.create_string_buffer(struct.pack("iii", signal.SIGCONT, 0, -1) + b"\0" * 116)  # SI_QUEUE
    calls[name]()


def itself(_):
    """What programs do with themselves, their threads and their children."""
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    child = subprocess.Popen(["/bin/sh", "-c", "exec sleep 60"])
    child.kill()
    child.wait()
    os.kill(os.getpid(), 0)


WAYS = {
    "meddle": meddle,
    "itself": itself,
    "read": read,
    "write": write,
    "list": os.listdir,
    "remove": os.unlink,
    "truncate": lambda path: os.truncate(path, 0),
    "chmod": lambda path: os.chmod(path, 0o777),
    "chmod_at": chmod_at,
    "chown": lambda path: os.chown(path, -1, os.getgid()),
    "set_attribute": lambda path: os.setxattr(path, "user.toolgate", b"x"),
    "chmod_own": chmod_own,
    "chmod_run": lambda path: os.chmod(path, 0o755),
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
