/* toolgate shadow: what mode shadow would have refused, by tool, and whether it is safe to enforce. */
#include "base/arena.h"
#include "base/map.h"
#include "cli/options.h"
#include "cli/term.h"
#include "json/write.h"
#include "replay/decision_outcome.h"
#include "review/daemon_log.h"
#include "review/decision_input.h"
#include "review/decision_print.h"

#include <stdio.h>

#define SHADOW_CALLS_LEAST 20u /* fewer calls of a tool say nothing about it */
#define CODES_MAX          16u /* of a tool; the others are counted together, without an example */
#define EXAMPLE_MAX_BYTES  200u
#define NAME_SHOWN_BYTES   64u
#define PLACE_SHOWN_BYTES  4096u

struct code_row {
    struct str code, arguments; /* the arguments of the first call */
    uint64_t count;
};

struct tool_row {
    struct str tool;
    uint64_t calls, refused;           /* would have been */
    uint64_t worked, failed, repaired; /* of them: its result was good, an error; a later call would pass */
    uint64_t repeats;                  /* of them: in a loop */
    struct code_row codes[CODES_MAX];
    size_t code_count;
    struct tool_row *next;
};

struct shadow {
    struct arena *arena;
    struct decision_outcomes *outcomes;
    struct map *by_name;
    struct tool_row *first, **last;
    const struct json *places; /* where mode shadow is declared; NULL: no daemon says it */
};

static struct tool_row *row_of(struct shadow *s, struct str tool)
{
    struct tool_row *row = map_get(s->by_name, tool);
    if (row)
        return row;
    row = ARENA_NEW(s->arena, struct tool_row);
    row->tool = arena_dup(s->arena, tool);
    map_add(s->by_name, row->tool, row);
    *s->last = row;
    s->last = &row->next;
    return row;
}

static void count_code(struct shadow *s, struct tool_row *row, const struct decision *d)
{
    struct str code = d->would.code.len ? d->would.code : d->would.class;
    struct buf text = {0};
    size_t i = 0;
    while (i < row->code_count && !str_eq(row->codes[i].code, code))
        i++;
    if (i == CODES_MAX)
        return;
    if (i == row->code_count) {
        if (d->arguments)
            json_write(&text, d->arguments);
        row->codes[row->code_count++] = (struct code_row){
            .code = arena_dup(s->arena, code),
            .arguments = arena_dup(s->arena, arena_truncate(s->arena, buf_view(&text), EXAMPLE_MAX_BYTES))};
        buf_clear(&text);
    }
    row->codes[i].count++;
}

static bool add_outcome(void *owner, const struct decision *d, const struct recording_line *line)
{
    (void)line;
    decision_outcomes_add(((struct shadow *)owner)->outcomes, d);
    return true;
}

/* A report belongs to the call of its check. */
static bool add_call(void *owner, const struct decision *d, const struct recording_line *line)
{
    (void)line;
    struct shadow *s = owner;
    if (decision_is_report(d) || !str_is(d->mode, "shadow"))
        return true;
    struct tool_row *row = row_of(s, d->tool);
    row->calls++;
    if (!decision_would_be_refused(d))
        return true;
    const struct decision_outcome *outcome = decision_outcomes_get(s->outcomes, d);
    bool worked = str_is(outcome->ran, "ok") || str_is(outcome->ran, "partial_data");
    bool repeats = str_is(d->would.class, "loop"); /* its result was what it was before */
    row->refused++;
    row->repeats += repeats;
    row->worked += worked && !repeats;
    row->failed += outcome->ran.len && !worked && !repeats;
    row->repaired += outcome->kind == OUTCOME_REPAIRED;
    count_code(s, row, d);
    return true;
}

/* ---- the answer ---- */

struct answer {
    bool safe;
    const char *why;
};

/* A call that worked is what enforcing breaks; one whose result nobody knows may have worked. */
static struct answer answer_of(const struct tool_row *row)
{
    if (row->calls < SHADOW_CALLS_LEAST)
        return (struct answer){false, "too few calls to say"};
    if (row->worked)
        return (struct answer){false, "calls that worked would be refused: review them first"};
    if (row->failed + row->repeats < row->refused)
        return (struct answer){false, "the results of some calls are not known: review them first"};
    if (row->repeats) /* of a tool that is polled, the one that brings the change would be missed */
        return (struct answer){false,
                               "it repeated calls without anything new: enforce it if nobody polls it"};
    return (struct answer){true, row->refused ? "every call that would be refused failed anyway"
                                              : "no call would be refused"};
}

/* ---- where mode shadow is declared, as the daemon says ---- */

static bool is_among(struct str tool, const struct json *tools)
{
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++)
        if (str_eq(json_str(&tools->items[i]), tool))
            return true;
    return false;
}

static bool is_place_of(const struct json *place, struct str tool)
{
    const struct json *except = json_get_text(place, "except"); /* of the configuration's default */
    return except ? !is_among(tool, except) : is_among(tool, json_get_text(place, "tools"));
}

/* The next "FILE:LINE" of the tool's mode from *next on; without the line if it is computed. Empty: no more.
 */
static struct str next_place(const struct shadow *s, struct str tool, uint32_t *next)
{
    while (json_is(s->places, JSON_ARRAY) && *next < s->places->len) {
        const struct json *place = &s->places->items[(*next)++];
        struct str file = json_str(json_get_text(place, "file"));
        int64_t line;
        if (!is_place_of(place, tool))
            continue;
        return json_int(json_get_text(place, "line"), &line)
                   ? arena_printf(s->arena, STR_FMT ":%lld", STR_ARG(file), (long long)line)
                   : file;
    }
    return STR_NONE;
}

/* The fix of a tool that is safe; of another one only where it is. */
static void print_places(const struct shadow *s, const struct tool_row *row, bool safe)
{
    struct str place;
    uint32_t next = 0;
    if (!s->places && safe) {
        printf("  set mode = \"enforce\" in its policy, or in a policy { tools = { \"");
        decision_print_text(row->tool, NAME_SHOWN_BYTES);
        printf("\" }, … }\n");
    }
    while ((place = next_place(s, row->tool, &next)).len) {
        printf(safe ? "  set mode = \"enforce\" in " : "  its mode = \"shadow\" is in ");
        decision_print_text(place, PLACE_SHOWN_BYTES);
        putchar('\n');
    }
    if (s->places && !next_place(s, row->tool, &(uint32_t){0}).len)
        printf("  the daemon does not have it in mode shadow any more\n");
}

static void print_row(const struct shadow *s, const struct tool_row *row)
{
    struct answer answer = answer_of(row);
    printf("%s", term_colour(TERM_BOLD));
    decision_print_text(row->tool, NAME_SHOWN_BYTES);
    printf("%s: %llu calls, would refuse %llu; of these %llu worked, %llu failed anyway, %llu were repaired "
           "later",
           term_colour(TERM_PLAIN), (unsigned long long)row->calls, (unsigned long long)row->refused,
           (unsigned long long)row->worked, (unsigned long long)row->failed,
           (unsigned long long)row->repaired);
    if (row->repeats)
        printf(", %llu only repeated a call", (unsigned long long)row->repeats);
    putchar('\n');
    for (size_t i = 0; i < row->code_count; i++) {
        printf("  %6llu  ", (unsigned long long)row->codes[i].count);
        decision_print_text(row->codes[i].code, NAME_SHOWN_BYTES);
        printf("  such as ");
        decision_print_text(row->codes[i].arguments, EXAMPLE_MAX_BYTES);
        putchar('\n');
    }
    printf("  %s%s to enforce%s: %s\n", term_colour(answer.safe ? TERM_GREEN : TERM_YELLOW),
           answer.safe ? "safe" : "not safe", term_colour(TERM_PLAIN), answer.why);
    print_places(s, row, answer.safe);
}

static void print_json(const struct shadow *s, const struct tool_row *row)
{
    struct answer answer = answer_of(row);
    struct buf line = {0};
    struct json_out out = json_out(&line);
    struct str place;
    uint32_t next = 0;
    json_open(&out, '{');
    json_field_str(&out, "tool", row->tool);
    json_field_int(&out, "calls", (int64_t)row->calls);
    json_field_int(&out, "would_refuse", (int64_t)row->refused);
    json_field_int(&out, "worked", (int64_t)row->worked);
    json_field_int(&out, "failed", (int64_t)row->failed);
    json_field_int(&out, "repaired", (int64_t)row->repaired);
    json_field_int(&out, "repeats", (int64_t)row->repeats);
    json_field_open(&out, "codes", '[');
    for (size_t i = 0; i < row->code_count; i++) {
        json_open(&out, '{');
        json_field_str(&out, "code", row->codes[i].code);
        json_field_int(&out, "count", (int64_t)row->codes[i].count);
        json_field_str(&out, "arguments", row->codes[i].arguments);
        json_close(&out, '}');
    }
    json_close(&out, ']');
    json_field_bool(&out, "safe", answer.safe);
    json_field_text(&out, "why", answer.why);
    if (s->places)
        json_field_open(&out, "shadow", '[');
    while ((place = next_place(s, row->tool, &next)).len)
        json_put_str(&out, place);
    if (s->places)
        json_close(&out, ']');
    json_close(&out, '}');
    printf(STR_FMT "\n", STR_ARG(buf_view(&line)));
    buf_clear(&line);
}

/* The dates of shadow_until that have come, as the daemon says. */
static void report_expired(const struct command *command, const struct json *status)
{
    const struct json *list = json_get_text(json_get_text(status, "generation"), "shadow_expired");
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++)
        term_error(command->name, STR_FMT ": " STR_FMT,
                   STR_ARG(json_str(json_get_text(&list->items[i], "file"))),
                   STR_ARG(json_str(json_get_text(&list->items[i], "why"))));
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    bool json = false;
    int status;
    const struct cli_option table[] = {
        SOCKET_OPTION(&socket),
        {"json", NULL, "print one JSON object for each tool", 'j', OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct shadow s = {.arena = arena_new()};
    struct daemon_log log = {.files = (const char *const *)argv, .count = (size_t)argc};
    struct decision_input *input = NULL;
    /* A named file may be of another host: only a named daemon says where the modes are. */
    bool asked = argc && socket;
    if (asked)
        log.status = daemon_log_status(command, socket, s.arena);
    if (asked && !log.status) {
        arena_free(s.arena);
        return CLI_ERROR;
    }
    if (argc || daemon_log_find(command, socket, DAEMON_LOG_ALL, s.arena, &log))
        input = decision_input_open(command, log.files, log.count);
    if (!input) {
        arena_free(s.arena);
        return CLI_ERROR;
    }
    s.outcomes = decision_outcomes_new();
    s.by_name = map_new(s.arena);
    s.last = &s.first;
    s.places = json_get_text(json_get_text(log.status, "generation"), "shadow");
    bool read = decision_input_walk(input, false, add_outcome, &s);
    decision_outcomes_end(s.outcomes);
    decision_input_report_left_out(input, s.outcomes);
    read = read && decision_input_walk(input, true, add_call, &s);
    status = s.first ? CLI_OK : CLI_NO; /* a script that enforces on success must not do so without a call */
    for (const struct tool_row *row = s.first; row; row = row->next) {
        (json ? print_json : print_row)(&s, row);
        if (!answer_of(row).safe)
            status = CLI_NO;
    }
    report_expired(command, log.status);
    if (!s.first && read)
        term_error(command->name,
                   "no call of a tool in mode shadow is recorded; set `mode = \"shadow\"` in its policy");
    read = read && !decision_input_is_cut_short(input);
    decision_outcomes_free(s.outcomes);
    arena_free(s.arena);
    decision_input_close(input);
    return read ? status : CLI_ERROR;
}

const struct command command_shadow = {
    .name = "shadow",
    .operands = "[FILE]...",
    .summary = "say what mode shadow would have refused",
    .about =
        "Reads the decision log, and prints for each tool in mode shadow how many calls it would have\n"
        "refused, whether these calls worked, and whether its policy is safe to enforce. Without FILE it\n"
        "reads the daemon's log, the rotated files first. The daemon says in which file and line the mode "
        "is;\n"
        "with FILE, only one that --socket names is asked.",
    .exits = "  0  every tool is safe to enforce\n"
             "  1  at least one is not, or there are too few calls to say, or none\n"
             "  2  usage, or a file that cannot be read",
    .example = "  toolgate shadow\n"
               "  toolgate decisions --would --review",
    .most = 1000,
    .run = run,
};
