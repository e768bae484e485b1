/*
 * What needs attention, of an answer of toolgate/status: one function for each kind of problem, and a table
 * of them in the order in which they are printed. A problem takes one line that names the fix, so that
 * nobody has to look for it. rpc_call_text has escaped foreign texts.
 */
#include "cli/status_attention.h"
#include "cli/print.h"
#include "cli/term.h"

#include <stdio.h>

static bool begun;

/* The title comes with the first of them. */
static void attend(void)
{
    if (!begun)
        printf("%sneeds attention:%s\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    begun = true;
    printf("  ");
}

static uint32_t count_of(const struct json *list)
{
    return json_is(list, JSON_ARRAY) ? list->len : 0;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static const struct json *of_generation(const struct json *answer, const char *key)
{
    return json_get_text(json_get_text(answer, "generation"), key);
}

static void print_quarantined(const struct json *answer)
{
    const struct json *list = json_get_text(answer, "quarantined");
    for (uint32_t i = 0; i < count_of(list); i++) {
        const struct json *q = &list->items[i];
        attend();
        printf(STR_FMT " is quarantined: " STR_FMT "; " STR_FMT " (" STR_FMT ")\n",
               STR_ARG(json_str(json_get_text(q, "file"))), STR_ARG(json_str(json_get_text(q, "why"))),
               STR_ARG(json_str(json_get_text(q, "fix"))), STR_ARG(json_str(json_get_text(q, "list"))));
    }
}

static void print_faults(const struct json *answer)
{
    const struct json *list = json_get_text(answer, "policy_faults");
    for (uint32_t i = 0; i < count_of(list); i++) {
        const struct json *fault = &list->items[i];
        struct str tool = json_str(json_get_text(fault, "tool"));
        attend();
        printf("the policy of " STR_FMT " has failed %lld time%s, last: " STR_FMT "\n",
               STR_ARG(tool.len ? tool : json_str(json_get_text(fault, "gateway"))),
               (long long)print_number(fault, "count"), plural(print_number(fault, "count")),
               STR_ARG(json_str(json_get_text(fault, "last"))));
    }
}

static void print_busy(const struct json *answer)
{
    const struct json *list = json_get_text(answer, "busy");
    for (uint32_t i = 0; i < count_of(list); i++) {
        const struct json *busy = &list->items[i];
        attend();
        printf(STR_FMT
               " is busy to uid %lld for another %lld s: its policy used up its time in several calls "
               "in a row; make its hooks faster\n",
               STR_ARG(json_str(json_get_text(busy, "tool"))), (long long)print_number(busy, "uid"),
               (long long)print_number(busy, "left_s"));
    }
}

static void print_unmatched(const struct json *answer)
{
    const struct json *list = of_generation(answer, "unmatched");
    for (uint32_t i = 0; i < count_of(list); i++) {
        struct str why = json_str(json_get_text(&list->items[i], "why"));
        attend();
        printf(STR_FMT " guards no tool: " STR_FMT "\n",
               STR_ARG(json_str(json_get_text(&list->items[i], "file"))),
               STR_ARG(why.len ? why : STR_LIT("waits for its upstream")));
    }
}

static void print_expired(const struct json *answer)
{
    const struct json *list = of_generation(answer, "shadow_expired");
    for (uint32_t i = 0; i < count_of(list); i++) {
        attend();
        printf(STR_FMT ": " STR_FMT "\n", STR_ARG(json_str(json_get_text(&list->items[i], "file"))),
               STR_ARG(json_str(json_get_text(&list->items[i], "why"))));
    }
}

static void print_warnings(const struct json *answer)
{
    const struct json *list = of_generation(answer, "warnings");
    for (uint32_t i = 0; i < count_of(list); i++) {
        attend();
        printf(STR_FMT "\n", STR_ARG(json_str(&list->items[i])));
    }
}

/* Of prompts and resources. */
static void print_list_warnings(const struct json *answer)
{
    const struct json *lists = json_get_text(answer, "lists"), *list = json_get_text(lists, "warnings");
    int64_t more = print_number(lists, "more_warnings");
    for (uint32_t i = 0; i < count_of(list); i++) {
        attend();
        printf(STR_FMT "\n", STR_ARG(json_str(&list->items[i])));
    }
    if (more > 0) {
        attend();
        printf("%lld more prompts and resources are left out\n", (long long)more);
    }
}

/* A sink of the decision log that is down, and records that none has. */
static void print_lost_records(const struct json *answer)
{
    const struct json *decisions = json_get_text(answer, "decisions");
    const struct json *sinks = json_get_text(decisions, "sinks");
    long long dropped = (long long)print_number(decisions, "dropped");
    for (uint32_t i = 0; i < count_of(sinks); i++) {
        struct str why = json_str(json_get_text(&sinks->items[i], "why"));
        if (why.len) {
            attend();
            printf("the decision log cannot write: " STR_FMT "\n", STR_ARG(why));
        }
    }
    if (dropped) {
        attend();
        printf("the decision log has lost %lld record%s since the daemon started\n", dropped,
               plural(dropped));
    }
}

/* Nobody reads the log, or not fast enough. */
static void print_lost_lines(const struct json *answer)
{
    long long dropped = (long long)print_number(answer, "log_lines_dropped");
    if (!dropped)
        return;
    attend();
    printf("the log has lost %lld line%s since the daemon started: its disk is full, or what reads it (the "
           "journal, a pipe) stands still or is too slow\n",
           dropped, plural(dropped));
}

/* best_effort on a kernel, or under a unit, that cannot hold a process. */
static void print_unheld(const struct json *answer)
{
    const struct json *list = json_get_text(answer, "upstreams");
    for (uint32_t i = 0; i < count_of(list); i++) {
        struct str missing = json_str(json_get_text(&list->items[i], "sandbox_missing"));
        if (!missing.len)
            continue;
        attend();
        printf("the upstream " STR_FMT " runs without " STR_FMT "\n",
               STR_ARG(json_str(json_get_text(&list->items[i], "name"))), STR_ARG(missing));
    }
}

/* Definitions of upstreams that nobody has accepted yet. */
static void print_pins(const struct json *answer)
{
    const struct json *pins = json_get_text(answer, "pins"), *lost = json_get_text(pins, "lost");
    long long pending = (long long)print_number(pins, "pending"),
              held = (long long)print_number(pins, "held");
    if (count_of(lost)) {
        attend();
        printf("the state folder has lost the accepted definitions of %u upstream%s: toolgate pins\n",
               lost->len, plural(lost->len));
    }
    if (pending) {
        attend();
        printf(
            "%lld changed definition%s of tools, %lld of them neither listed nor callable: toolgate pins\n",
            pending, plural(pending), held);
    }
}

static void print_problems(const struct json *answer)
{
    const struct json *list = json_get_text(answer, "problems");
    for (uint32_t i = 0; i < count_of(list); i++) {
        const struct json *p = &list->items[i];
        attend();
        printf(STR_FMT ", %lld time%s, last by " STR_FMT ": " STR_FMT "\n",
               STR_ARG(json_str(json_get_text(p, "code"))), (long long)print_number(p, "count"),
               plural(print_number(p, "count")), STR_ARG(json_str(json_get_text(p, "client"))),
               STR_ARG(json_str(json_get_text(p, "last"))));
    }
}

static void (*const kinds[])(const struct json *answer) = {
    print_quarantined,   print_faults,       print_busy,       print_unmatched, print_expired, print_warnings,
    print_list_warnings, print_lost_records, print_lost_lines, print_unheld,    print_pins,    print_problems,
};

void status_print_attention(const struct json *answer)
{
    begun = false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        kinds[i](answer);
}
