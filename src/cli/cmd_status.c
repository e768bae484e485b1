/* toolgate status: prints the answer of toolgate/status. */
#include "base/buf.h"
#include "cli/rpc_call.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/print.h"
#include "json/write.h"

#include <stdio.h>

static const struct column {
    const char *title, *key;
    int width; /* negative: left-aligned */
} columns[] = {{"NAME", "name", -16},   {"KIND", "kind", -6},  {"STATE", "state", -9},
               {"TOOLS", "tools", 5},   {"CALLS", "calls", 7}, {"FAILED", "failures", 7},
               {"STARTS", "starts", 6}, {"PID", "pid", 7},     {"BREAKER", "breaker", -9}};
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

/* One line each, and its last error below. */
static void print_upstreams(const struct json *list)
{
    printf("%supstreams:%s\n ", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    for (size_t i = 0; i < COLUMNS; i++)
        printf(" %*s", columns[i].width, columns[i].title);
    putchar('\n');
    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *upstream = &list->items[i];
        putchar(' ');
        for (size_t k = 0; k < COLUMNS; k++)
            put_cell(&columns[k], json_get_text(upstream, columns[k].key));
        putchar('\n');
        /* The last error, its age unless it is the present state, and the next try. */
        struct buf text = {0};
        struct str error = json_str(json_get_text(upstream, "last_error"));
        int64_t ago_s = number_of(json_get_text(upstream, "last_error_s_ago"));
        int64_t next_ms = number_of(json_get_text(upstream, "next_try_ms"));
        int64_t paused_s = number_of(json_get_text(upstream, "breaker_after_s"));
        if (ago_s >= 0)
            buf_printf(&text, "%lld s ago: ", (long long)ago_s);
        buf_str(&text, error);
        if (next_ms >= 0)
            buf_printf(&text, "; next try in %lld s, or with toolgate reload",
                       (long long)(next_ms + 999) / 1000);
        if (paused_s > 0)
            buf_printf(&text, "; not called for %lld s more", (long long)paused_s);
        if (error.len)
            term_print_indented(buf_view(&text), 4);
        buf_clear(&text);
    }
}

static const struct {
    const char *on_outage, *words;
} outage_rules[] = {{"local", "each daemon counts for itself, and merges afterwards"},
                    {"closed", "calls are refused"},
                    {"open", "calls pass uncounted"}};

static void print_connection(const struct json *ledger)
{
    struct str on_outage = json_str(json_get_text(ledger, "on_outage"));
    if (json_is_true(json_get_text(ledger, "connected"))) {
        printf(", %sconnected%s\n", term_colour(TERM_GREEN), term_colour(TERM_PLAIN));
        return;
    }
    printf(", %sdown%s since ", term_colour(TERM_RED), term_colour(TERM_PLAIN));
    term_print_time(print_number(ledger, "away_since_ms"));
    printf(": " STR_FMT "\n", STR_ARG(json_str(json_get_text(ledger, "why_away"))));
    for (size_t i = 0; i < sizeof(outage_rules) / sizeof(outage_rules[0]); i++)
        if (str_is(on_outage, outage_rules[i].on_outage))
            printf("  until then %s (on_outage = \"%s\")\n", outage_rules[i].words,
                   outage_rules[i].on_outage);
}

static void print_redis(const struct json *ledger)
{
    struct str server = json_str(json_get_text(ledger, "server"));
    const struct json *warnings = json_get_text(ledger, "warnings");
    printf(STR_FMT " at " STR_FMT, STR_ARG(server.len ? server : STR_LIT("redis")),
           STR_ARG(json_str(json_get_text(ledger, "address"))));
    print_connection(ledger);
    printf(
        "  requests: %lld to redis, %lld counted here, %lld uncounted, %lld refused; median %lld us, slowest "
        "%lld us\n",
        (long long)print_number(ledger, "by_redis"), (long long)print_number(ledger, "by_stand_in"),
        (long long)print_number(ledger, "uncounted"), (long long)print_number(ledger, "refused"),
        (long long)print_number(ledger, "median_us"), (long long)print_number(ledger, "worst_us"));
    printf("  connected %lld times, %lld outages; sessions: %lld to be merged, %lld merged, %lld lost\n",
           (long long)print_number(ledger, "connects"), (long long)print_number(ledger, "outages"),
           (long long)print_number(ledger, "waiting"), (long long)print_number(ledger, "merged"),
           (long long)print_number(ledger, "lost"));
    if (json_get_text(ledger, "keys_at_connect"))
        printf("  keys in its database at the last connect: %lld\n",
               (long long)print_number(ledger, "keys_at_connect"));
    if ((long long)print_number(ledger, "forgotten") > 0)
        printf("  sessions evicted here to free memory: %lld\n",
               (long long)print_number(ledger, "forgotten"));
    for (uint32_t i = 0; json_is(warnings, JSON_ARRAY) && i < warnings->len; i++)
        printf("  %swarning:%s " STR_FMT "\n", term_colour(TERM_YELLOW), term_colour(TERM_PLAIN),
               STR_ARG(json_str(&warnings->items[i])));
}

static void print_ledger(const struct json *ledger)
{
    printf("%sledger:%s ", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    if (json_get_text(ledger, "on_outage"))
        print_redis(ledger);
    else
        printf("local, of this daemon alone: %lld sessions, %lld bytes; %lld evicted to free memory\n",
               (long long)print_number(ledger, "sessions"), (long long)print_number(ledger, "bytes"),
               (long long)print_number(ledger, "forgotten"));
}

static void print_schema_lax(const struct json *list)
{
    static const struct {
        const char *code, *words;
    } codes[] = {
        {"missing", "may be missing"}, {"unknown_field", "is accepted"}, {"not_allowed", "is accepted"}};
    if (list->len)
        printf("%sschemas that their servers do not keep:%s learnt from calls that models insisted on\n",
               term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *known = &list->items[i];
        struct str path = json_str(json_get_text(known, "path")),
                   tool = json_str(json_get_text(known, "tool"));
        const char *words = "may have another type";
        for (size_t k = 0; k < sizeof(codes) / sizeof(*codes); k++)
            if (str_is(json_str(json_get_text(known, "code")), codes[k].code))
                words = codes[k].words;
        printf("  " STR_FMT ": '" STR_FMT "' %s, until ", STR_ARG(tool), STR_ARG(path), words);
        term_print_time(print_number(known, "until_ms"));
        printf("; in a policy of the tool, " STR_FMT " makes it permanent, " STR_FMT " forbids it\n",
               STR_ARG(json_str(json_get_text(known, "permanent"))),
               STR_ARG(json_str(json_get_text(known, "forbidden"))));
    }
}

/* What clients and policies do without effect: one line each, so that nobody has to look for it. */
static void print_attention(const struct json *answer)
{
    const struct json *problems = json_get_text(answer, "problems");
    const struct json *unmatched = json_get_text(json_get_text(answer, "generation"), "unmatched");
    const struct json *quarantined = json_get_text(answer, "quarantined");
    uint32_t count = (problems ? problems->len : 0) + (unmatched ? unmatched->len : 0) +
                     (quarantined ? quarantined->len : 0);
    if (!count)
        return;
    printf("%sneeds attention:%s\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    for (uint32_t i = 0; problems && i < problems->len; i++) {
        const struct json *p = &problems->items[i];
        printf("  " STR_FMT ", %lld times, last by " STR_FMT ": " STR_FMT "\n",
               STR_ARG(json_str(json_get_text(p, "code"))), (long long)print_number(p, "count"),
               STR_ARG(json_str(json_get_text(p, "client"))), STR_ARG(json_str(json_get_text(p, "last"))));
    }
    for (uint32_t i = 0; unmatched && i < unmatched->len; i++) {
        const struct json *u = &unmatched->items[i];
        struct str why = json_str(json_get_text(u, "why"));
        printf("  " STR_FMT " guards no tool: " STR_FMT "\n", STR_ARG(json_str(json_get_text(u, "file"))),
               STR_ARG(why.len ? why : STR_LIT("waits for its upstream")));
    }
    for (uint32_t i = 0; quarantined && i < quarantined->len; i++) {
        const struct json *q = &quarantined->items[i];
        printf("  " STR_FMT " is quarantined: " STR_FMT "; " STR_FMT "\n",
               STR_ARG(json_str(json_get_text(q, "file"))), STR_ARG(json_str(json_get_text(q, "why"))),
               STR_ARG(json_str(json_get_text(q, "fix"))));
    }
}

static int print_status(void *owner, const struct json *answer)
{
    (void)owner;
    for (uint32_t i = 0; i < answer->len; i++) {
        const struct json_member *member = &answer->members[i];
        if (str_is(member->key, "upstreams") && json_is(&member->value, JSON_ARRAY))
            print_upstreams(&member->value);
        else if (str_is(member->key, "ledger"))
            print_ledger(&member->value);
        else if (str_is(member->key, "schema_lax") && json_is(&member->value, JSON_ARRAY))
            print_schema_lax(&member->value);
        else if (!str_is(member->key, "problems") && !str_is(member->key, "quarantined"))
            print_member(member, 0);
    }
    print_attention(answer);
    return CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    bool json = false;
    int status;
    if (!options_read_request(command, &argc, &argv, &socket, &json, &status))
        return status;
    return rpc_call(command, socket, "toolgate/status", str_of("{}"),
                    json ? rpc_call_print_json : print_status, NULL);
}

const struct command command_status = {
    .name = "status",
    .operands = "",
    .summary = "show generation, upstreams, ledger and counters",
    .about =
        "Prints what the running daemon serves and since when, its upstreams, its ledger, its counters, and\n"
        "the warnings about the loaded tools.",
    .exits = "  0  the daemon answered\n"
             "  2  usage, no daemon",
    .example = "  toolgate status --json | python3 -m json.tool",
    .run = run,
};
