/*
 * toolgate status: prints the answer of toolgate/status for whoever is paged at night: what is served and
 * since when, then what is down or refused. What is as it should be takes one line; --all has the rest.
 * The last part, what needs attention, is status_attention.c.
 * Names of tools come from servers and clients: they are printed without control characters.
 */
#include "base/buf.h"
#include "cli/rpc_call.h"
#include "cli/options.h"
#include "cli/status_attention.h"
#include "cli/term.h"
#include "cli/print.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

static const struct column {
    const char *title, *key;
    int width; /* negative: left-aligned */
} upstream_columns[] = {{"NAME", "name", -16},   {"KIND", "kind", -6},  {"STATE", "state", -9},
                        {"TOOLS", "tools", 5},   {"CALLS", "calls", 7}, {"FAILED", "failures", 7},
                        {"STARTS", "starts", 6}, {"PID", "pid", 7},     {"BREAKER", "breaker", -9}};
#define COLUMNS (sizeof(upstream_columns) / sizeof(upstream_columns[0]))

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
        printf(" %*s", upstream_columns[i].width, upstream_columns[i].title);
    putchar('\n');
    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *upstream = &list->items[i];
        putchar(' ');
        for (size_t k = 0; k < COLUMNS; k++)
            put_cell(&upstream_columns[k], json_get_text(upstream, upstream_columns[k].key));
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
    term_print_when(print_number(ledger, "away_since_ms"));
    printf(": " STR_FMT "\n", STR_ARG(json_str(json_get_text(ledger, "why_away"))));
    for (size_t i = 0; i < sizeof(outage_rules) / sizeof(outage_rules[0]); i++)
        if (str_is(on_outage, outage_rules[i].on_outage))
            printf("  until then %s (on_outage = \"%s\")\n", outage_rules[i].words,
                   outage_rules[i].on_outage);
}

/* Behind Sentinel the address says where the sentinels are, not which server is in use. */
static void print_master(const struct json *master)
{
    if (!master)
        return;
    printf("  master of '" STR_FMT "': " STR_FMT ", since ", STR_ARG(json_str(json_get_text(master, "name"))),
           STR_ARG(json_str(json_get_text(master, "address"))));
    term_print_when(print_number(master, "since_ms"));
    putchar('\n');
}

static void print_redis(const struct json *ledger)
{
    struct str server = json_str(json_get_text(ledger, "server"));
    const struct json *warnings = json_get_text(ledger, "warnings");
    printf(STR_FMT " at " STR_FMT, STR_ARG(server.len ? server : STR_LIT("redis")),
           STR_ARG(json_str(json_get_text(ledger, "address"))));
    print_connection(ledger);
    print_master(json_get_text(ledger, "master"));
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
        printf("local, of this daemon alone; sessions: %lld, %lld bytes, %lld evicted to free memory\n",
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

/* ---- what is served ---- */

#define LIST_SHOWN   8u  /* names on one line */
#define TOOLS_SHOWN  10u /* rows, without --all */
#define NAME_COLUMNS 40u

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void put_title(const char *title)
{
    printf("%s%s:%s", term_colour(TERM_BOLD), title, term_colour(TERM_PLAIN));
}

static void put_clipped(struct str text, unsigned columns, bool pads)
{
    struct buf clipped = {0};
    unsigned used = term_clip(&clipped, text, columns);
    printf(STR_FMT "%*s", STR_ARG(buf_view(&clipped)), pads ? (int)(columns - used) : 0, "");
    buf_clear(&clipped);
}

static void print_path(const struct json *value, const char *title)
{
    if (json_is(value, JSON_STRING))
        printf("  %-14s " STR_FMT "\n", title, STR_ARG(json_str(value)));
    for (uint32_t i = 0; json_is(value, JSON_ARRAY) && i < value->len; i++)
        print_path(&value->items[i], i ? "" : title);
}

/* Only the operator is told them. */
static void print_paths(const struct json *paths)
{
    static const struct {
        const char *key, *title;
    } rows[] = {{"config", "configuration"}, {"policies", "policies"},      {"schemas", "schemas"},
                {"tools", "tools"},          {"mcp_configs", "mcpServers"}, {"log", "log"},
                {"state", "state"}};
    for (size_t i = 0; paths && i < sizeof(rows) / sizeof(rows[0]); i++)
        print_path(json_get_text(paths, rows[i].key), rows[i].title);
    if (paths && !json_get_text(paths, "config"))
        printf("  %-14s none: defaults and options\n", "configuration");
}

static void print_generation(const struct json *answer)
{
    const struct json *g = json_get_text(answer, "generation");
    int64_t tools = print_number(g, "tools"), policies = print_number(g, "policies");
    printf("  generation %lld, since ", (long long)print_number(g, "number"));
    term_print_when(print_number(g, "since_ms"));
    printf(": %lld tool%s, %lld polic%s [" STR_FMT "]\n", (long long)tools, plural(tools),
           (long long)policies, policies == 1 ? "y" : "ies", STR_ARG(json_str(json_get_text(g, "hash"))));
}

static void print_warnings(const struct json *warnings)
{
    if (json_is(warnings, JSON_ARRAY) && warnings->len)
        printf("  warnings:\n");
    for (uint32_t i = 0; json_is(warnings, JSON_ARRAY) && i < warnings->len; i++)
        term_print_indented(json_str(&warnings->items[i]), 4);
}

/* A reload that went well shows in the generation's time. */
static void print_reload(const struct json *reload)
{
    if (!reload || json_is_true(json_get_text(reload, "ok")))
        return;
    put_title("reload");
    printf(" %sfailed%s ", term_colour(TERM_RED), term_colour(TERM_PLAIN));
    term_print_when(print_number(reload, "at_ms"));
    printf("; the generation before it is served\n  errors:\n");
    term_print_indented(json_str(json_get_text(reload, "errors")), 4);
}

static void print_head(const struct json *answer)
{
    struct str state = json_str(json_get_text(answer, "state"));
    bool calm = str_is(state, "serving");
    printf("%stoolgate " STR_FMT "%s, pid %lld, %s" STR_FMT "%s at " STR_FMT "\n", term_colour(TERM_BOLD),
           STR_ARG(json_str(json_get_text(answer, "version"))), term_colour(TERM_PLAIN),
           (long long)print_number(answer, "pid"), term_colour(calm ? TERM_GREEN : TERM_YELLOW),
           STR_ARG(state), term_colour(TERM_PLAIN), STR_ARG(json_str(json_get_text(answer, "socket"))));
    printf("  started ");
    term_print_when(print_number(answer, "started_ms"));
    putchar('\n');
    print_generation(answer);
    print_paths(json_get_text(answer, "paths"));
    print_warnings(json_get_text(json_get_text(answer, "generation"), "warnings"));
    print_reload(json_get_text(answer, "reload"));
}

/* ---- calls ---- */

/* "pass 4, refuse 3", without zeros. */
static void put_counts(const struct json *counts, const char *none)
{
    const char *before = "";
    for (uint32_t i = 0; json_is(counts, JSON_OBJECT) && i < counts->len; i++) {
        int64_t n;
        if (!json_int(&counts->members[i].value, &n) || !n)
            continue;
        printf("%s" STR_FMT " %lld", before, STR_ARG(counts->members[i].key), (long long)n);
        before = ", ";
    }
    printf("%s\n", *before ? "" : none);
}

static void print_counters(const struct json *answer)
{
    static const char *const more[] = {"cancelled",     "rewritten", "would",       "policy_errors",
                                       "repair_chains", "loops",     "calls_saved", "fabricated_id_on_retry"};
    const struct json *c = json_get_text(answer, "counters");
    int64_t calls = print_number(c, "calls"), checks = print_number(c, "checks");
    put_title("counters");
    printf(" %lld call%s, %lld check%s, %lld report%s", (long long)calls, plural(calls), (long long)checks,
           plural(checks), (long long)print_number(c, "reports"), plural(print_number(c, "reports")));
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        if (print_number(c, more[i]))
            printf(", %s %lld", more[i], (long long)print_number(c, more[i]));
    putchar('\n');
    if (!calls && !checks)
        return;
    printf("  verdicts  ");
    put_counts(json_get_text(c, "verdicts"), "none");
    printf("  classes   ");
    put_counts(json_get_text(c, "classes"), "none");
}

static int by_refusals(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    int64_t n = print_number(x, "refused"), m = print_number(y, "refused");
    if (n != m)
        return n < m ? 1 : -1;
    n = print_number(x, "calls");
    m = print_number(y, "calls");
    return n != m ? (n < m ? 1 : -1)
                  : str_cmp(json_str(json_get_text(x, "tool")), json_str(json_get_text(y, "tool")));
}

static unsigned name_columns(const struct json *const *rows, uint32_t count)
{
    unsigned columns = 4;
    for (uint32_t i = 0; i < count; i++) {
        size_t len = json_str(json_get_text(rows[i], "tool")).len;
        columns = len > columns ? (unsigned)len : columns;
    }
    return columns < NAME_COLUMNS ? columns : NAME_COLUMNS;
}

/* Those refused most come first: of 300 tools, they are what somebody looks for. */
static void print_tools(const struct json *list, bool all)
{
    if (!json_is(list, JSON_ARRAY) || !list->len)
        return;
    const struct json **rows = malloc(list->len * sizeof(const struct json *));
    uint32_t shown = all || list->len <= TOOLS_SHOWN ? list->len : TOOLS_SHOWN;
    if (!rows)
        abort();
    for (uint32_t i = 0; i < list->len; i++)
        rows[i] = &list->items[i];
    qsort(rows, list->len, sizeof(const struct json *), by_refusals);
    unsigned columns = name_columns(rows, shown);
    put_title("tools");
    printf("\n  %-*s %7s %7s  %s\n", (int)columns, "TOOL", "CALLS", "REFUSED", "CLASSES");
    for (uint32_t i = 0; i < shown; i++) {
        printf("  ");
        put_clipped(json_str(json_get_text(rows[i], "tool")), columns, true);
        printf(" %7lld %7lld  ", (long long)print_number(rows[i], "calls"),
               (long long)print_number(rows[i], "refused"));
        put_counts(json_get_text(rows[i], "classes"), "-");
    }
    if (shown < list->len)
        printf("  … and %u more: --all\n", list->len - shown);
    free(rows);
}

static void print_connections(const struct json *answer)
{
    const struct json *c = json_get_text(answer, "connections");
    put_title("connections");
    printf(" %lld of at most %lld open; %lld accepted, %lld refused; %lld call%s in flight, %lld bytes "
           "buffered\n",
           (long long)print_number(c, "open"), (long long)print_number(c, "most"),
           (long long)print_number(c, "accepted"), (long long)print_number(c, "refused"),
           (long long)print_number(c, "calls_in_flight"), plural(print_number(c, "calls_in_flight")),
           (long long)print_number(c, "buffered_bytes"));
}

/* ---- policies ---- */

static void print_overlays(const struct json *list)
{
    if (json_is(list, JSON_ARRAY) && list->len)
        printf("%soverlays:%s\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *over = json_get_text(&list->items[i], "over");
        printf("  " STR_FMT " (" STR_FMT ") over %u tool%s",
               STR_ARG(json_str(json_get_text(&list->items[i], "file"))),
               STR_ARG(json_str(json_get_text(&list->items[i], "mode"))), over ? over->len : 0,
               plural(over ? over->len : 0));
        for (uint32_t k = 0; over && k < over->len && k < LIST_SHOWN; k++) {
            printf("%s", k ? ", " : ": ");
            put_clipped(json_str(&over->items[k]), NAME_COLUMNS, false);
        }
        printf("%s\n", over && over->len > LIST_SHOWN ? ", …" : "");
    }
}

static void print_rules(const struct json *list)
{
    if (json_is(list, JSON_ARRAY) && list->len)
        printf("%srules:%s hits since this generation\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *rules = json_get_text(&list->items[i], "rules");
        printf("  " STR_FMT "\n", STR_ARG(json_str(json_get_text(&list->items[i], "tool"))));
        for (uint32_t k = 0; rules && k < rules->len; k++)
            printf("  %7lld  " STR_FMT "\n", (long long)print_number(&rules->items[k], "hits"),
                   STR_ARG(json_str(json_get_text(&rules->items[k], "says"))));
    }
}

static void print_decisions(const struct json *decisions)
{
    const struct json *sinks = json_get_text(decisions, "sinks");
    if (!decisions)
        return;
    put_title("decisions");
    if (!json_is_true(json_get_text(decisions, "on")))
        printf(" off: no call is recorded");
    for (uint32_t i = 0; json_is(sinks, JSON_ARRAY) && i < sinks->len; i++) {
        const struct json *sink = &sinks->items[i];
        struct str path = json_str(json_get_text(sink, "path")),
                   state = json_str(json_get_text(sink, "state"));
        struct str why = json_str(json_get_text(sink, "why"));
        printf("%s " STR_FMT " %s" STR_FMT "%s, %lld written, %lld dropped", i ? ";" : "",
               STR_ARG(path.len ? path : json_str(json_get_text(sink, "kind"))),
               str_is(state, "up") ? "" : term_colour(TERM_RED), STR_ARG(state), term_colour(TERM_PLAIN),
               (long long)print_number(sink, "written"), (long long)print_number(sink, "dropped"));
        if (why.len)
            printf(": " STR_FMT, STR_ARG(why));
    }
    putchar('\n');
}

static void print_metrics(const struct json *metrics)
{
    if (!metrics)
        return;
    put_title("metrics");
    printf(" " STR_FMT "%s, %lld requests, %lld refused, %lld timed out\n",
           STR_ARG(json_str(json_get_text(metrics, "listen"))),
           json_is_true(json_get_text(metrics, "page")) ? " with the page" : "",
           (long long)print_number(metrics, "requests"), (long long)print_number(metrics, "refused"),
           (long long)print_number(metrics, "timed_out"));
}

static void print_traces(const struct json *traces)
{
    struct str state = json_str(json_get_text(traces, "state")),
               why = json_str(json_get_text(traces, "last_error"));
    if (!traces)
        return;
    put_title("traces");
    printf(" " STR_FMT " %s" STR_FMT "%s, %lld sent, %lld waiting, %lld dropped, %lld rejected",
           STR_ARG(json_str(json_get_text(traces, "endpoint"))),
           str_is(state, "up") ? "" : term_colour(TERM_RED), STR_ARG(state), term_colour(TERM_PLAIN),
           (long long)print_number(traces, "sent"), (long long)print_number(traces, "waiting"),
           (long long)print_number(traces, "dropped"), (long long)print_number(traces, "rejected"));
    if (why.len)
        printf(": " STR_FMT, STR_ARG(why));
    putchar('\n');
}

/* ---- the whole ---- */

static uint32_t count_of(const struct json *list)
{
    return json_is(list, JSON_ARRAY) ? list->len : 0;
}

struct status_options {
    const char *socket;
    bool all, json;
};

static bool is_empty(const struct json *value)
{
    return (value->type == JSON_ARRAY || value->type == JSON_OBJECT) && !value->len;
}

/* What a newer daemon has, and nothing above prints. */
static void print_rest(const struct json *answer)
{
    static const char *const printed[] = {
        "version",    "state",         "pid",      "started_ms", "uptime_s",    "socket",
        "paths",      "generation",    "reload",   "upstreams",  "ledger",      "tools",
        "schema_lax", "connections",   "counters", "rules",      "quarantined", "decisions",
        "problems",   "policy_faults", "metrics",  "traces",     "config_hash", "pins"};
    for (uint32_t i = 0; i < answer->len; i++)
        if (!STR_IS_ONE_OF(answer->members[i].key, printed) && !is_empty(&answer->members[i].value))
            print_member(&answer->members[i], 0);
}

static int print_status(void *owner, const struct json *answer)
{
    const struct status_options *options = owner;
    const struct json *upstreams = json_get_text(answer, "upstreams"),
                      *lax = json_get_text(answer, "schema_lax");
    print_head(answer);
    if (count_of(upstreams))
        print_upstreams(upstreams);
    print_ledger(json_get_text(answer, "ledger"));
    print_connections(answer);
    print_decisions(json_get_text(answer, "decisions"));
    print_metrics(json_get_text(answer, "metrics"));
    print_traces(json_get_text(answer, "traces"));
    print_counters(answer);
    print_tools(json_get_text(answer, "tools"), options->all);
    print_overlays(json_get_text(json_get_text(answer, "generation"), "overlays"));
    if (count_of(lax))
        print_schema_lax(lax);
    if (options->all)
        print_rules(json_get_text(answer, "rules"));
    print_rest(answer);
    status_print_attention(answer);
    return CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct status_options options = {0};
    int status;
    const struct cli_option table[] = {
        {"all", NULL, "also all tools, and how often each rule of a policy decided", 'a', OPTION_FLAG,
         &options.all},
        SOCKET_OPTION(&options.socket),
        {"json", NULL, "print JSON", 'j', OPTION_FLAG, &options.json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    return options.json
               ? rpc_call(command, options.socket, "toolgate/status", str_of("{}"), rpc_call_print_json, NULL)
               : rpc_call_text(command, options.socket, "toolgate/status", str_of("{}"), print_status,
                               &options);
}

const struct command command_status = {
    .name = "status",
    .operands = "",
    .summary = "show generation, upstreams, ledger and counters",
    .about =
        "Prints what the running daemon serves and since when, from which files (for root and the daemon's\n"
        "user), its upstreams, ledger and counters, the tools that it refused most, and what needs\n"
        "attention. It prints what is served even if an upstream or Redis is down: look at the text, or at\n"
        "`state` and `connected` of --json, not at the exit code.",
    .exits = "  0  the daemon answered\n"
             "  2  usage, no daemon",
    .example = "  toolgate status --json | python3 -m json.tool",
    .run = run,
};
