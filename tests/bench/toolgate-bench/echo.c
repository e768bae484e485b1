/* The same listener, connections and loop as the daemon's, and no JSON. */
#include "echo.h"

#include "io/conn.h"
#include "server/listener.h"

#include <stdlib.h>

#define ECHO_LINE_MAX_BYTES 1048576u

struct echo {
    struct loop *loop;
    struct listener *listener;
};

struct echo_client {
    struct conn *conn;
};

static void on_line(void *owner, struct str line)
{
    struct echo_client *client = owner;
    struct buf *out = conn_out(client->conn);
    buf_str(out, line);
    buf_byte(out, '\n');
}

static void on_too_long(void *owner, struct str head, bool for_memory)
{
    (void)owner, (void)head, (void)for_memory;
}

static void on_eof(void *owner, struct str rest)
{
    struct echo_client *client = owner;
    (void)rest;
    conn_finish(client->conn);
}

static void on_gone(void *owner)
{
    free(owner);
}

static void on_accepted(void *owner, int fd)
{
    static const struct conn_callbacks hooks = {on_line, on_too_long, on_eof, on_gone, NULL, NULL};
    struct echo *echo = owner;
    struct echo_client *client = calloc(1, sizeof(*client));
    if (!client)
        abort();
    client->conn = conn_new(echo->loop, fd, fd, ECHO_LINE_MAX_BYTES, &hooks, client);
}

static void on_no_files(void *owner, int fd)
{
    (void)owner, (void)fd;
}

enum err echo_serve(const char *path, struct why *why)
{
    static const struct listener_hooks hooks = {on_accepted, on_no_files};
    struct echo echo = {.loop = loop_new()};
    if (!echo.loop)
        return err_set(why, ERR_IO, "the kernel gives no event queue (epoll)");
    enum err err = listener_new(echo.loop, path, 0600, &hooks, &echo, &echo.listener, why);
    while (!err) {
        loop_turn(echo.loop, true);
        listener_accept(echo.listener);
    }
    loop_free(echo.loop);
    return err;
}
