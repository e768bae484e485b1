"""A daemon of its own for a test, with its policies in a temporary folder. TOOLGATE names the binary."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping


class Daemon:
    def __init__(self, folder: str, policies: Mapping[str, str]) -> None:
        self.folder, self.socket = folder, folder + "/t.sock"
        os.mkdir(folder + "/policies")
        for name, source in policies.items():
            with open(f"{folder}/policies/{name}.lua", "w") as file:
                file.write(source)
        self.log = open(folder + "/log", "w+")
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = [os.environ["TOOLGATE"], "serve", "--socket", self.socket, "--policies", self.folder + "/policies"]
        self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def kill(self) -> None:
        if self.child:
            self.child.send_signal(signal.SIGKILL)
            self.child.wait()
            self.child = None


@contextlib.contextmanager
def daemon(policies: Mapping[str, str] = {}, starts: bool = True) -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory() as folder:
        made = Daemon(folder, policies)
        if starts:
            made.start()
        try:
            yield made
        finally:
            made.kill()
            made.log.close()
