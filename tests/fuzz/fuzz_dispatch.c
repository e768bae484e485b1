/*
 * Any bytes on a connection to the whole daemon, which runs in a thread of this process: frames, JSON-RPC,
 * MCP and the methods of toolgate, policies and the ledger behind them. Each line that comes back is a
 * message of JSON-RPC, an answer names an id that was sent at most as often as it was sent, and the
 * connection is served to its end within a bound.
 */
#include "fuzzed_daemon.h"

static const struct fuzzed_file files[] = {
    {"toolgate.lua", "return { decisions = false, watch = false, log = { level = 'error' }, "
                     "limits = { message = 65536 } }\n"},
    {"policies/echo.lua",
     "-- echo: returns its text. For the fuzzer.\n"
     "return tool 'echo' { description = 'Echo.', effects = 'read', schema = params { text = str 'Text', "
     "n = optional(int { min = 0, max = 9 }), kind = optional(enum { 'a', 'b' }) },\n"
     "  check = function(args) if args.text == 'no' then return "
     "refuse('no', 'Not this.', 'Say yes.') end end,\n"
     "  run = function(args) return { text = args.text } end }\n"},
    {"policies/told.lua",
     "-- told: the agent runs it. For the fuzzer.\n"
     "return tool 'told' { description = 'Tell.', effects = 'write', schema = params { id "
     "= str 'Id' }, normalise = function(args) args.id = args.id:lower() end,\n"
     "  result = function(result) if result.n == 0 then return broken('none', "
     "'nothing') end end }\n"},
};

static size_t count_lines(const uint8_t *data, size_t size)
{
    size_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    return lines;
}

/* To the end of the connection; returns the number of answers. */
static size_t read_answers(int fd)
{
    struct buf in = {0};
    size_t answers = 0;
    char bytes[65536];
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    for (ssize_t n = 1; n > 0;) {
        REQUIRE(poll(&readable, 1, PATIENCE_MS) == 1); /* else the loop stands still */
        n = recv(fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            buf_add(&in, bytes, (size_t)n);
        size_t begun = 0;
        for (char *end; in.len > begun && (end = memchr(in.at + begun, '\n', in.len - begun));) {
            struct str line = {in.at + begun, (size_t)(end - in.at) - begun};
            answers += check_message(line);
            begun += line.len + 1;
        }
        if (begun)
            memmove(in.at, in.at + begun, in.len - begun);
        in.len -= begun;
    }
    REQUIRE(!in.len); /* half a line */
    buf_clear(&in);
    return answers;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!address.sun_path[0]) {
        make_home();
        start_daemon(files, sizeof(files) / sizeof(*files));
    }
    int fd = connect_to_daemon();
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(fd, data + sent, size - sent, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    shutdown(fd, SHUT_WR);
    REQUIRE(read_answers(fd) <= count_lines(data, size) + 1);
    close(fd);
    return 0;
}
