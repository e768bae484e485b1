/* toolgate status: the running daemon about itself. */
#include "base/buf.h"
#include "cli/ask.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/show.h"
#include "json/write.h"

#include <stdio.h>

static const struct column {
    const char *title, *key;
    int width; /* negative: a text, to the left */
} columns[] = {{"NAME", "name", -16},   {"KIND", "kind", -6},      {"STATE", "state", -9},
               {"TOOLS", "tools", 5},   {"CALLS", "calls", 7},     {"FAILED", "failures", 7},
               {"STARTS", "starts", 6}, {"BREAKER", "breaker", -9}};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void put_cell(const struct column *column, const struct json *value)
{
    struct buf text = {0};
    if (json_is(value, JSON_STRING))
        buf_str(&text, json_str(value));
    else if (value)
        json_write(&text, value);
    else
        buf_byte(&text, '-');
    printf(" %*.*s", column->width, (int)text.len, text.at);
    buf_clear(&text);
}

static int64_t number_of(const struct json *value)
{
    int64_t n;
    return json_int(value, &n) ? n : -1;
}

/* What went wrong last, how long ago unless it is so now, and what comes next. */
static void show_trouble(const struct json *upstream)
{
    struct buf text = {0};
    struct str error = json_str(json_get_text(upstream, "last_error"));
    int64_t ago_s = number_of(json_get_text(upstream, "last_error_s_ago"));
    int64_t next_ms = number_of(json_get_text(upstream, "next_try_ms"));
    int64_t left_alone_s = number_of(json_get_text(upstream, "breaker_after_s"));
    if (ago_s >= 0)
        buf_printf(&text, "%lld s ago: ", (long long)ago_s);
    buf_str(&text, error);
    if (next_ms >= 0)
        buf_printf(&text, "; tried again in %lld s, or with toolgate reload",
                   (long long)(next_ms + 999) / 1000);
    if (left_alone_s > 0)
        buf_printf(&text, "; left alone for %lld s more", (long long)left_alone_s);
    if (error.len)
        say_indented(buf_view(&text), 4);
    buf_clear(&text);
}

/* One a line, and below it why it is not there. */
static void show_upstreams(const struct json *list)
{
    printf("%supstreams:%s\n ", say_colour(SAY_BOLD), say_colour(SAY_PLAIN));
    for (size_t i = 0; i < COLUMNS; i++)
        printf(" %*s", columns[i].width, columns[i].title);
    putchar('\n');
    for (uint32_t i = 0; i < list->len; i++) {
        putchar(' ');
        for (size_t k = 0; k < COLUMNS; k++)
            put_cell(&columns[k], json_get_text(&list->items[i], columns[k].key));
        putchar('\n');
        show_trouble(&list->items[i]);
    }
}

static int print_tree(void *owner, const struct json *answer)
{
    (void)owner;
    for (uint32_t i = 0; i < answer->len; i++) {
        const struct json_member *member = &answer->members[i];
        if (str_is(member->key, "upstreams") && json_is(&member->value, JSON_ARRAY))
            show_upstreams(&member->value);
        else
            show_member(member, 0);
    }
    return CLI_YES;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    bool json = false;
    int status;
    const struct cli_option table[] = {
        {"socket", "PATH", "the daemon's socket (default $XDG_RUNTIME_DIR/toolgate.sock)", 's', OPTION_TEXT,
         &socket},
        {"json", NULL, "as JSON", 'j', OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    return ask_daemon(command, socket, "toolgate/status", str_of("{}"), json ? ask_print_json : print_tree,
                      NULL);
}

const struct command command_status = {
    .name = "status",
    .operands = "",
    .summary = "generation, ledger and counters of the daemon",
    .about = "What the running daemon serves, since when, its ledger, its counters, and what was odd about\n"
             "the tools it loaded.",
    .exits = "  0  the daemon answered\n"
             "  2  usage, no daemon",
    .example = "  toolgate status --json | python3 -m json.tool",
    .run = run,
};
