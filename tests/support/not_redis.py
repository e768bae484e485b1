# Listens on a port and imitates a broken Redis: not_redis.py FIRST FUNCTION FOREVER DELAY, the first three with Python's
# escapes.
#   FIRST     sent to each new connection; empty: it performs the handshake of a Redis 7
#   FUNCTION  the reply to each FCALL after the handshake; empty: none
#   FOREVER   sent after FIRST until the peer disconnects
#   DELAY     seconds before each reply; may be left out
# The first line of stdout is its port; then it prints a line for each FCALL.
import codecs, socket, sys, threading, time

first, function, forever = (codecs.decode(word, "unicode_escape").encode("latin-1") for word in sys.argv[1:4])
delay = float(sys.argv[4]) if len(sys.argv) > 4 else 0
INFO = b"redis_version:7.0.0\r\nrun_id:1\r\nrole:master\r\naof_enabled:1\r\n"
TIME = b"*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"
ANSWERS = {b"TIME": TIME, b"GET": b"$-1\r\n", b"DEL": b":4\r\n", b"INFO": b"$%d\r\n%s\r\n" % (len(INFO), INFO), b"ID": b":7\r\n"}


def words_of(stream):
    count = int(stream.readline()[1:])
    words = []
    for _ in range(count):
        size = int(stream.readline()[1:])
        words.append(stream.read(size + 2)[:-2])
    return words


def play(peer):
    stream = peer.makefile("rb")
    while True:
        words = words_of(stream)
        time.sleep(delay)
        if words[0].upper() == b"FCALL" and (b"{probe-" in words[3] or words[3] == b"tg2:callid_key"):
            peer.sendall(b":1\r\n")
        elif words[0].upper() == b"FCALL":
            print("fcall", flush=True)
            peer.sendall(function)
        else:
            peer.sendall(ANSWERS.get(words[1] if len(words) == 2 else b"", ANSWERS.get(words[0], b"+OK\r\n")))


def serve(peer):
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if not first:
            play(peer)
        peer.sendall(first)
        while forever:
            peer.sendall(forever)
        peer.recv(1 << 20)
        while peer.recv(1 << 20):
            pass
    except (OSError, ValueError):
        peer.close()


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
