/*
 * toolgate top: what the running daemon does, drawn again at each interval. It
 * asks toolgate/status and toolgate/sessions on one connection, and connects
 * again after the daemon has restarted. It changes nothing in the daemon.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "cli/daemon_client.h"
#include "cli/options.h"
#include "top/raw_terminal.h"
#include "cli/term.h"
#include "top/top_frame.h"

#include <errno.h>
#include <stdio.h>

#define TOP_INTERVAL_S   1u
#define TOP_INTERVAL_MAX 3600u
#define TOP_LATE_US      3000000 /* after this the frame says that the daemon does not answer */
#define TOP_ONCE_COLUMNS 120u    /* if stdout is no terminal */

#define SESSIONS_IN_A_LOOP "{\"loops\":true,\"limit\":8}"

enum asking { ASKED_NOTHING, ASKED_STATUS, ASKED_SESSIONS };

struct top {
    const char *socket;
    struct daemon_client *client; /* NULL: not connected */
    enum asking asked;
    struct top_snapshot before, now, next; /* `next` is being received */
    struct top_view view;
    struct why why;           /* why there is no connection */
    int64_t asked_us, due_us; /* the open question; the next one */
    int64_t restarted_us;     /* another process has answered; 0: never */
    unsigned interval_s;
};

static void clear(struct top_snapshot *snapshot)
{
    arena_free(snapshot->arena);
    *snapshot = (struct top_snapshot){0};
}

static void disconnect(struct top *top)
{
    daemon_client_close(top->client);
    top->client = NULL;
    top->asked = ASKED_NOTHING;
    clear(&top->next);
}

static enum err ask(struct top *top, const char *method, const char *params, enum asking asked)
{
    enum err err = daemon_client_ask(top->client, method, str_of(params), &top->why);
    if (err)
        disconnect(top);
    else
        top->asked = asked;
    return err;
}

static enum err begin(struct top *top)
{
    top->asked_us = clock_mono_us();
    top->due_us = top->asked_us + (int64_t)top->interval_s * 1000000;
    if (!top->client && daemon_client_connect(top->socket, &top->client, &top->why))
        return ERR_UNAVAILABLE;
    top->next = (struct top_snapshot){.arena = arena_new()};
    return ask(top, "toolgate/status", "{}", ASKED_STATUS);
}

static void complete(struct top *top)
{
    top->asked = ASKED_NOTHING;
    if (top->now.status && !top_same_process(&top->now, &top->next))
        top->restarted_us = top->next.at_us;
    clear(&top->before);
    top->before = top->now;
    top->now = top->next;
    top->next = (struct top_snapshot){0};
}

/* Reads one answer. ERR_PARSE is the daemon's refusal: of sessions it only means that there are none to show.
 */
static enum err receive(struct top *top)
{
    struct json *answer = ARENA_NEW(top->next.arena, struct json);
    enum err err = daemon_client_answer(top->client, top->next.arena, answer, &top->why);
    if (top->asked == ASKED_STATUS && err == OK) {
        top->next.status = answer;
        top->next.at_us = clock_mono_us();
        return ask(top, "toolgate/sessions", SESSIONS_IN_A_LOOP, ASKED_SESSIONS);
    }
    if (top->asked == ASKED_SESSIONS && (err == OK || err == ERR_PARSE)) {
        top->next.sessions = err == OK ? answer : NULL;
        complete(top);
        return OK;
    }
    disconnect(top);
    return err ? err : ERR_PARSE;
}

/* ---- one frame for scripts ---- */

static enum err snapshot(struct top *top)
{
    enum err err = begin(top);
    while (err == OK && top->asked != ASKED_NOTHING)
        err = receive(top);
    return err;
}

static void draw(struct top *top, struct buf *frame)
{
    struct top_figures figures = {0};
    if (top->now.status)
        top_figures_compute(&top->before, &top->now, top->view.order, &figures);
    top_frame(frame, &top->view, &top->now, &figures);
}

static void sleep_until(int64_t us)
{
    struct timespec until = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

static int once(const struct command *command, struct top *top)
{
    unsigned rows;
    enum err err = snapshot(top);
    if (err == OK) {
        sleep_until(top->due_us);
        err = snapshot(top);
    }
    if (err) {
        term_error(command->name, "%s", top->why.text);
        return CLI_ERROR;
    }
    top->view.columns = TOP_ONCE_COLUMNS;
    if (*term_colour(TERM_PLAIN))
        raw_terminal_size(&top->view.columns, &rows);
    struct buf frame = {0};
    draw(top, &frame);
    fwrite(frame.at, 1, frame.len, stdout);
    buf_clear(&frame);
    return CLI_OK;
}

/* ---- live ---- */

static void set_notice(struct top *top, struct buf *text)
{
    int64_t now = clock_mono_us();
    text->len = 0;
    if (!top->client)
        buf_printf(text, "trying again every %u s: %s", top->interval_s, top->why.text);
    else if (top->asked != ASKED_NOTHING && now - top->asked_us > TOP_LATE_US)
        buf_printf(text, "no answer for %lld s; what follows is older",
                   (long long)(now - top->asked_us) / 1000000);
    else if (top->restarted_us && now - top->restarted_us < 10 * 1000000)
        buf_text(text, "the daemon has restarted; it counts from zero");
    top->view.notice = buf_view(text);
}

static void show(struct top *top)
{
    struct buf frame = {0}, notice = {0};
    raw_terminal_size(&top->view.columns, &top->view.rows);
    set_notice(top, &notice);
    draw(top, &frame);
    raw_terminal_draw(buf_view(&frame));
    buf_clear(&frame);
    buf_clear(&notice);
}

/* False: quit. */
static bool press(struct top *top, char key)
{
    static const struct {
        char key;
        enum top_order order;
    } keys[] = {{'r', TOP_BY_RATE}, {'f', TOP_BY_REFUSALS}, {'n', TOP_BY_NAME}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (key == keys[i].key)
            top->view.order = keys[i].order;
    return key != 'q';
}

static int live(const struct command *command, struct top *top)
{
    struct raw_terminal_event event = {0};
    struct why why;
    if (raw_terminal_open(&why)) {
        term_error(command->name, "%s", why.text);
        return CLI_ERROR;
    }
    top->view.keys = true;
    do {
        bool is_due = clock_mono_us() >= top->due_us;
        if (is_due && top->asked == ASKED_NOTHING)
            begin(top);
        else if (is_due) /* late: the frame says so */
            top->due_us += 1000000;
        show(top);
        event = raw_terminal_wait(top->client ? daemon_client_descriptor(top->client) : -1, top->due_us);
        if (event.readable && top->asked != ASKED_NOTHING)
            receive(top);
        else if (event.readable)
            disconnect(top); /* the daemon sends nothing on its own: it has closed the connection */
    } while (!event.ended && press(top, event.key));
    raw_terminal_close();
    return CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct top top = {.interval_s = TOP_INTERVAL_S};
    bool is_once = false;
    int status;
    const struct cli_option table[] = {
        SOCKET_OPTION(&top.socket),
        {"interval", "SECONDS", "time between two frames (default 1)", 'i', OPTION_NUMBER, &top.interval_s},
        {"once", NULL, "print one frame after one interval, then end", 0, OPTION_FLAG, &is_once},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (top.interval_s > TOP_INTERVAL_MAX) {
        term_error(command->name, "--interval: expected at most %u seconds, got %u", TOP_INTERVAL_MAX,
                   top.interval_s);
        return CLI_ERROR;
    }
    top.view.interval_s = top.interval_s;
    status = is_once ? once(command, &top) : live(command, &top);
    disconnect(&top);
    clear(&top.before);
    clear(&top.now);
    return status;
}

const struct command command_top = {
    .name = "top",
    .operands = "",
    .summary = "watch calls, refusals, loops and upstreams live",
    .about =
        "Draws what the running daemon does, once an interval: calls by verdict, tools with their refusals\n"
        "and how many of them the model repaired, sessions in a loop, upstreams, ledger. Keys: r sorts by\n"
        "rate, f by refusals, n by name, q quits. It connects again after the daemon has restarted.",
    .exits = "  0  quit; with --once: the frame was printed\n"
             "  2  usage, no terminal, with --once: no daemon",
    .example = "  toolgate top --interval 2\n"
               "  toolgate top --once | head",
    .run = run,
};
