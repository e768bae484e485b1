# Stands between daemons and their Redis and makes the network bad: redis_proxy.py SERVER PREFIX COUNT SEED FAULTS
#   SERVER  the Unix socket of Redis; PREFIX1 … PREFIXn are the sockets that it listens on
#   FAULTS  name=share, comma-separated; the share of the requests (what one read returned) that meet it:
#     delay       the request, or its reply, is forwarded up to DELAY_MAX_S later
#     lose        the connection is closed before Redis has the request
#     lose_reply  Redis has the request; the connection is closed before its reply
#     stall       the request is forwarded STALL_S later, after the daemon has given up
#   or, whatever their share: old, ancient (INFO names version 6 or 5), slow (the probe's write takes SLOW_S)
# SIGUSR1 ends all faults. Prints "ready" when it listens.
import asyncio
import random
import re
import signal
import sys

DELAY_MAX_S, STALL_S, SLOW_S = 0.012, 0.4, 0.03
CHUNK = 1 << 16

server, prefix, count, seed, faults = sys.argv[1:6]
shares = {name: float(share) for name, share in (word.split("=") for word in faults.split(",") if word)}
chance = random.Random(int(seed))


def meets(fault):
    return chance.random() < shares.get(fault, 0)


def aged(data):
    version = b"6" if "old" in shares else b"5" if "ancient" in shares else None
    if not version:
        return data
    return re.sub(rb"redis_version:\d+", b"redis_version:" + version, data).replace(b"valkey_version", b"valkei_version")


async def requests(reader, writer, losing):
    """Returns when the daemon has gone, or a fault is to close the connection."""
    while data := await reader.read(CHUNK):
        if meets("delay"):
            await asyncio.sleep(chance.random() * DELAY_MAX_S)
        if meets("stall"):
            await asyncio.sleep(STALL_S)
        if "slow" in shares and b"SET" in data and b"{probe-" in data:
            await asyncio.sleep(SLOW_S)
        if meets("lose"):
            return
        if meets("lose_reply"):
            losing.append(True)
        writer.write(data)
        await writer.drain()
        if losing:
            await asyncio.sleep(DELAY_MAX_S)  # Redis runs it
            return


async def replies(reader, writer, losing):
    while data := await reader.read(CHUNK):
        if meets("delay"):
            await asyncio.sleep(chance.random() * DELAY_MAX_S)
        if not losing:
            writer.write(aged(data))
            await writer.drain()


async def serve(reader, writer):
    try:
        redis_reader, redis_writer = await asyncio.open_unix_connection(server)
    except OSError:
        writer.close()
        return
    losing = []
    request = asyncio.create_task(requests(reader, redis_writer, losing))
    reply = asyncio.create_task(replies(redis_reader, writer, losing))
    await asyncio.wait([request, reply], return_when=asyncio.FIRST_COMPLETED)
    for task in (request, reply):
        task.cancel()
    await asyncio.gather(request, reply, return_exceptions=True)
    writer.close()
    redis_writer.close()


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, shares.clear)
    for i in range(1, int(count) + 1):
        await asyncio.start_unix_server(serve, f"{prefix}{i}")
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
