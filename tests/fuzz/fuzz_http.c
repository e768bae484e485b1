/*
 * Any bytes on a connection to the metrics endpoint of the whole daemon, with its page. The first byte says
 * how they are cut. What comes back is nothing, if the request is not complete, or one response that is
 * well-formed to its last byte, whatever was pipelined behind the request; cuts do not change its status, and
 * a request that the parser refuses is refused.
 */
#include "fuzzed_daemon.h"

#include "io/http_listener.h"

#define RESPONSE_MAX_BYTES (8u * 1024 * 1024)

static const struct fuzzed_file files[] = {
    {"toolgate.lua", "return { decisions = false, watch = false, log = { level = 'error' },\n"
                     "  metrics = { listen = 'unix:HOME/m', page = true } }\n"},
    {"policies/echo.lua", "-- echo: returns its text. For the fuzzer.\n"
                          "return tool 'echo' { description = 'Echo.', effects = 'read',\n"
                          "  schema = params { text = str 'Text', n = optional(int { min = 0, max = 9 }) },\n"
                          "  check = function(args)\n"
                          "    if args.text == 'no' then return refuse('no', 'Not this.', 'Say yes.') end\n"
                          "  end,\n"
                          "  run = function(args) return { text = args.text } end }\n"},
};

static struct sockaddr_un endpoint = {.sun_family = AF_UNIX};

static void receive(int fd, struct buf *in)
{
    char bytes[65536];
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    for (ssize_t n = 1; n > 0;) {
        REQUIRE(poll(&readable, 1, PATIENCE_MS) == 1); /* else the loop stands still */
        n = recv(fd, bytes, sizeof(bytes), 0);
        REQUIRE(n >= 0); /* no reset: the response could be lost */
        buf_add(in, bytes, (size_t)n);
        REQUIRE(in->len <= RESPONSE_MAX_BYTES);
    }
}

static struct str take_line(struct str *head)
{
    const char *end = memmem(head->at, head->len, "\r\n", 2);
    REQUIRE(end);
    struct str line = {head->at, (size_t)(end - head->at)};
    *head = str_from(*head, line.len + 2);
    for (size_t i = 0; i < line.len; i++)
        REQUIRE((unsigned char)line.at[i] >= ' ' && line.at[i] != 0x7f);
    return line;
}

static void check_json(struct str body)
{
    char why[200], *text = strndup(body.at, body.len);
    REQUIRE(text && strlen(text) == body.len);
    yajl_val value = yajl_tree_parse(text, why, sizeof(why));
    REQUIRE(value);
    yajl_tree_free(value);
    free(text);
}

/* Returns the status. */
static unsigned check_response(struct str response, bool is_head)
{
    unsigned minor = 9, status = 0;
    char length[32], status_line[64];
    bool has_length = false, closes = false, is_json = false;
    size_t expected = 0;
    struct str line = take_line(&response);
    snprintf(status_line, sizeof(status_line), STR_FMT, STR_ARG(line));
    REQUIRE(sscanf(status_line, "HTTP/1.%1u %3u ", &minor, &status) == 2 && minor <= 1);
    REQUIRE(status >= 200 && status <= 505);
    while ((line = take_line(&response)).len) {
        REQUIRE(memmem(line.at, line.len, ": ", 2));
        if (str_starts_nocase(line, "content-length: ")) {
            REQUIRE(!has_length);
            has_length = true;
            snprintf(length, sizeof(length), STR_FMT, STR_ARG(str_from(line, strlen("content-length: "))));
            expected = strtoul(length, NULL, 10);
        }
        closes |= str_starts_nocase(line, "connection: close");
        is_json |= str_starts_nocase(line, "content-type: application/json");
    }
    REQUIRE(has_length && closes);
    REQUIRE(response.len == (is_head ? 0 : expected)); /* no second response behind it */
    if (is_json && !is_head)
        check_json(response);
    return status;
}

/* Returns the status; 0: there was no response. `step`: bytes that are sent at once. */
static unsigned exchange(struct str bytes, size_t step, bool is_head)
{
    struct buf in = {0};
    int fd = connect_to(&endpoint);
    for (size_t sent = 0; sent < bytes.len;) {
        size_t len = bytes.len - sent < step ? bytes.len - sent : step;
        ssize_t n = send(fd, bytes.at + sent, len, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
        if (sent < bytes.len)
            poll(NULL, 0, 1); /* the daemon reads the piece by itself, mostly */
    }
    shutdown(fd, SHUT_WR);
    receive(fd, &in);
    unsigned status = in.len ? check_response(buf_view(&in), is_head) : 0;
    buf_clear(&in);
    close(fd);
    return status;
}

static void check(struct str bytes, unsigned cut)
{
    struct http_request request = {.minor = 1};
    const char *why;
    size_t head = http_head_length(str_cut(bytes, HTTP_HEAD_MAX_BYTES));
    unsigned refusal = head ? http_request_parse((struct str){bytes.at, head}, &request, &why) : 0;
    bool is_head =
        head && !refusal && request.length <= HTTP_BODY_MAX_BYTES && str_is(request.method, "HEAD");
    unsigned status = exchange(bytes, bytes.len + 1, is_head);
    if (refusal)
        REQUIRE(status == refusal);
    else if (head && request.length > HTTP_BODY_MAX_BYTES)
        REQUIRE(status == 413);
    else if (head && bytes.len >= head + request.length)
        REQUIRE(status);
    else
        REQUIRE(!status || status == 431);
    if (cut % 4 == 1)
        REQUIRE(exchange(bytes, bytes.len / (2 + cut / 64) + 1, is_head) == status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!address.sun_path[0]) {
        make_home();
        start_daemon(files, sizeof(files) / sizeof(*files));
        snprintf(endpoint.sun_path, sizeof(endpoint.sun_path), "%s/m", home);
    }
    if (size)
        check((struct str){(const char *)data + 1, size - 1}, data[0]);
    return 0;
}
