"""Runs a command whose stderr is a pipe that nobody reads until the file FLOW exists; then it is copied to FLOW.log.

stalled_reader.py FLOW COMMAND ARGUMENT…
"""
import os
import sys
import time


def read_later(source, flow, daemon):
    while not os.path.exists(flow):
        if os.getppid() != daemon:
            os._exit(0)
        time.sleep(0.01)
    with open(flow + ".log", "wb", buffering=0) as log:
        while True:
            data = os.read(source, 65536)
            if not data:
                os._exit(0)
            log.write(data)


source, sink = os.pipe()
daemon = os.getpid()
if os.fork() == 0:
    os.close(sink)
    read_later(source, sys.argv[1], daemon)
os.close(source)
os.dup2(sink, 2)
os.close(sink)
os.execvp(sys.argv[2], sys.argv[2:])
