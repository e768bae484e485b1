#!/usr/bin/env python3
"""Runs the Dockerfile without a container runtime: each stage in a root of its own, by mmdebstrap and chroot; then what
compose.yaml says, two gates on one Redis. Prints TAP. Needs root.

Known are the instructions that the Dockerfile uses; another one is an error."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITES = {"debian:bookworm-slim": "bookworm"}


def check(title, good, why=""):
    print(("ok - " if good else "not ok - ") + title, flush=True)
    for line in [] if good else str(why).splitlines()[-20:]:
        print("#   " + line)
    return good


class Stage:
    """A root file system, and what the Dockerfile has set for it."""

    def __init__(self, path, image):
        self.path, self.folder, self.environment, self.user = path, "/", {}, "root"
        self.entry, self.command, self.health = [], [], []
        subprocess.run(["mmdebstrap", "--quiet", '--aptopt=Acquire::Retries "5"', "--variant=minbase",
                        "--include=ca-certificates", SUITES[image], path], check=True, close_fds=True)
        # This machine's settings of apt, as its network needs them.
        shutil.copytree("/etc/apt/apt.conf.d", path + "/etc/apt/apt.conf.d", dirs_exist_ok=True)
        for name in "/etc/resolv.conf", "/etc/hosts":
            if os.path.exists(name):
                shutil.copyfile(name, path + name)
        for name in "proc", "dev":
            subprocess.run(["mount", "--bind", "/" + name, os.path.join(path, name)], check=True)

    def argv(self, argv, user=None):
        environment = ["%s=%s" % pair for pair in self.environment.items()]
        prefix = ["chroot", "--userspec=" + (user or self.user), self.path, "env", "-i", "-C", self.folder,
                  "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]
        return prefix + environment + argv

    def run(self, argv):
        return subprocess.run(self.argv(argv), capture_output=True, text=True)

    def inside(self, path):
        return self.path + os.path.normpath(os.path.join(self.folder, path))

    def close(self):
        for name in "proc", "dev":
            subprocess.run(["umount", "-l", os.path.join(self.path, name)])


def copy(stage, stages, words):
    source = ROOT
    if words[0].startswith("--from="):
        source = stages[words.pop(0)[len("--from="):]].path
    origin, target = os.path.normpath(source + "/" + words[0]), stage.inside(words[1])
    if origin == ROOT:  # what .dockerignore leaves: git's files
        os.makedirs(target, exist_ok=True)
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        packed = subprocess.Popen(["tar", "--null", "-T", "-", "-cf", "-"], cwd=ROOT, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        unpacking = subprocess.Popen(["tar", "-xf", "-", "-C", target], stdin=packed.stdout)
        packed.stdin.write(files)
        packed.stdin.close()
        return unpacking.wait() == 0
    os.makedirs(os.path.dirname(target), exist_ok=True)
    return subprocess.run(["cp", "-rT", origin, target]).returncode == 0


def instruction(stage, stages, word, rest):
    """Returns whether it worked, and what it printed."""
    if word == "RUN":
        done = stage.run(["sh", "-c", rest])
        return done.returncode == 0, done.stdout + done.stderr
    if word == "COPY":
        return copy(stage, stages, rest.split()), rest
    if word == "WORKDIR":
        os.makedirs(stage.path + rest, exist_ok=True)
        stage.folder = rest
    elif word == "ENV":
        stage.environment.update(pair.split("=", 1) for pair in shlex.split(rest))
    elif word == "USER":
        stage.user = rest
    elif word in ("ENTRYPOINT", "CMD"):
        setattr(stage, "entry" if word == "ENTRYPOINT" else "command", json.loads(rest))
    elif word == "HEALTHCHECK":
        stage.health = json.loads(rest[rest.index("CMD ") + 4:])
    else:
        return False, "not known to this test"
    return True, ""


def build(scratch):
    stages, stage = {}, None
    for line in open(os.path.join(ROOT, "Dockerfile"), encoding="utf-8"):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        word, rest = line.split(None, 1)
        if word == "FROM":
            image, name = re.match(r"(\S+)(?: AS (\S+))?$", rest).groups()
            stage = Stage(os.path.join(scratch, name or "image"), image)
            stages[name or "image"] = stage
            continue
        good, said = instruction(stage, stages, word, rest)
        if not check("Dockerfile: " + line[:90], good, said):
            return stages, None
    return stages, stage


def eventually(condition, seconds=30):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def try_image(image):
    shutil.copytree(os.path.join(ROOT, "policies"), image.path + "/etc/toolgate/policies", dirs_exist_ok=True)
    gate = subprocess.Popen(image.argv(image.entry + image.command), stdin=subprocess.DEVNULL)
    try:
        check("the image's health check becomes good", eventually(lambda: image.run(image.health).returncode == 0),
              image.run(image.health).stdout)
        owner = subprocess.run(["stat", "-c", "%u", "/proc/%d" % gate.pid], capture_output=True, text=True).stdout.strip()
        check("the daemon is not root", owner == "10001", owner)
        agent = subprocess.run(image.argv(["toolgate", "reload"], "10002:10001"), capture_output=True, text=True)
        check("another user of its group may connect, and is no operator", "user that runs the daemon" in agent.stderr,
              agent.stdout + agent.stderr)
        status = image.run(["toolgate", "status"])
        check("toolgate status finds it without an option", "/run/toolgate/toolgate.sock" in status.stdout, status.stdout + status.stderr)
    finally:
        gate.terminate()
        check("it ends on SIGTERM", gate.wait(30) == 0)
    check("a stopped daemon is not healthy", image.run(image.health).returncode != 0)


def try_compose(image):
    with open(os.path.join(ROOT, "compose.yaml"), encoding="utf-8") as file:
        said = json.loads(re.search(r'command: (\["serve".*\])', file.read()).group(1))
    redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", image.path + "/run/toolgate/redis.sock",
                              "--unixsocketperm", "777", "--save", ""], stdout=subprocess.DEVNULL)
    gates = []
    try:
        for name in "gate-1", "gate-2":
            socket = "/run/toolgate/%s.sock" % name
            command = [word.replace("redis://redis:6379/0", "unix:/run/toolgate/redis.sock")
                       .replace("/run/toolgate/toolgate.sock", socket) for word in said]
            gates.append(subprocess.Popen(image.argv(image.entry + command), stdin=subprocess.DEVNULL))
            check(name + " answers", eventually(lambda s=socket: image.run(["toolgate", "status", "--socket", s]).returncode == 0))
            status = image.run(["toolgate", "status", "--json", "--socket", socket])
            check(name + " keeps its memory in Redis", json.loads(status.stdout or "{}").get("ledger", {}).get("engine") == "redis",
                  status.stdout[:2000])
    finally:
        for process in gates + [redis]:
            process.terminate()
            process.wait(30)


def main():
    if os.geteuid() != 0:
        print("# skipped: an image's steps need root")
        return
    scratch = tempfile.mkdtemp(prefix="toolgate-image-")
    stages = {}
    try:
        stages, image = build(scratch)
        if image:
            try_image(image)
            try_compose(image)
    finally:
        for stage in stages.values():
            stage.close()
        subprocess.run(["rm", "-rf", "--one-file-system", scratch])


if __name__ == "__main__":
    sys.exit(main())
