/*
 * toolgate-bench policy: what hooks cost beside one that does nothing. All is
 * measured in turn, round by round, so that a busy host disturbs all alike,
 * and the median round is printed.
 */
#include "base/clock.h"
#include "cli/command.h"
#include "options.h"
#include "cli/term.h"
#include "json/write.h"
#include "subjects.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCH        500u /* of one subject in a row */
#define ROUNDS_LEAST 5u
#define ROUNDS_MOST  2000u

#define POLICIES_DEFAULT 10000u
#define POLICIES_MAX     100000u /* of one folder */

static const struct line {
    const char *name, *words;
} lines[SUBJECT_COUNT] = {
    [SUBJECT_EMPTY] = {"empty", "a check that does nothing"},
    [SUBJECT_PUSH] = {"push", "the same, handed six arguments"},
    [SUBJECT_BRIDGE] = {"bridge", "six arguments to Lua and back, unchanged"},
    [SUBJECT_CHANGE] = {"change", "the same, one of them changed"},
    [SUBJECT_RULES] = {"rules", "two rules, no function"},
    [SUBJECT_TWENTY] = {"policy", "a policy of twenty lines: rules and check"},
    [SUBJECT_RESULT] = {"result", "its judgement of a result"},
    [SUBJECT_PLAIN] = {"call", "a whole check of a call, without a policy"},
    [SUBJECT_WHOLE] = {"call_policy", "the same with those twenty lines"},
    [SUBJECT_AMONG] = {"call_among", "the same among all loaded policies"},
};

/* What was promised, as the difference of two lines. */
static const struct promise {
    const char *name, *words;
    enum subject_kind more, less;
    double most_ns; /* 0: without a limit */
} promises[] = {
    {"bridge", "the bridge for six arguments", SUBJECT_BRIDGE, SUBJECT_EMPTY, 600},
    {"policy", "a policy of twenty lines beyond the bridge", SUBJECT_TWENTY, SUBJECT_PUSH, 1000},
    {"loaded", "what all other loaded policies add to a call", SUBJECT_AMONG, SUBJECT_WHOLE, 0},
};
#define PROMISES            (sizeof(promises) / sizeof(promises[0]))
#define PROMISED_BYTES_EACH 2500.0

/* ---- measuring ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static enum err measure_round(struct subjects *subjects, double ns[SUBJECT_COUNT], struct why *why)
{
    for (int kind = 0; kind < SUBJECT_COUNT; kind++) {
        int64_t began = clock_mono_ns();
        enum err err = subjects_do(subjects, (enum subject_kind)kind, BATCH, why);
        if (err != OK)
            return err;
        ns[kind] = (double)(clock_mono_ns() - began) / BATCH;
    }
    return OK;
}

static enum err measure(struct subjects *subjects, unsigned seconds, double medians[SUBJECT_COUNT],
                        struct why *why)
{
    int64_t until = clock_mono_us() + (int64_t)seconds * 1000000;
    double(*samples)[ROUNDS_MOST] = calloc(SUBJECT_COUNT, sizeof(*samples)), round[SUBJECT_COUNT];
    unsigned rounds = 0;
    enum err err = samples ? measure_round(subjects, round, why) : ERR_LIMIT; /* warms up */
    while (err == OK && rounds < ROUNDS_MOST && (rounds < ROUNDS_LEAST || clock_mono_us() < until)) {
        err = measure_round(subjects, round, why);
        for (int kind = 0; kind < SUBJECT_COUNT; kind++)
            samples[kind][rounds] = round[kind];
        rounds++;
    }
    for (int kind = 0; err == OK && kind < SUBJECT_COUNT; kind++) {
        qsort(samples[kind], rounds, sizeof(double), by_size);
        medians[kind] = samples[kind][rounds / 2];
    }
    free(samples);
    return err;
}

/* ---- telling ---- */

static double difference(const struct promise *promise, const double ns[SUBJECT_COUNT])
{
    return ns[promise->more] - ns[promise->less];
}

static const char *kept(double got, double most)
{
    return term_colour(got <= most ? TERM_GREEN : TERM_RED);
}

static void print_promise(const struct promise *promise, const double ns[SUBJECT_COUNT])
{
    double got = difference(promise, ns);
    printf("  %-46s %9.0f ns  %5.2f", promise->words, got, got / ns[SUBJECT_EMPTY]);
    if (promise->most_ns > 0)
        printf("  %sat most %.0f%s", kept(got, promise->most_ns), promise->most_ns, term_colour(TERM_PLAIN));
    printf("\n");
}

static void print_load(const struct subjects_load *load)
{
    double each = (double)load->policies_bytes / (double)load->count;
    if (!load->count)
        return;
    printf("  %-46s %9.0f B   %sat most %.0f%s\n", "memory of a loaded policy", each,
           kept(each, PROMISED_BYTES_EACH), PROMISED_BYTES_EACH, term_colour(TERM_PLAIN));
    printf("  %zu policies: %.1f MB, %.1f MB more for their tools and schemas, loaded in %.2f s\n",
           load->count, (double)load->policies_bytes / 1e6, (double)load->tools_bytes / 1e6, load->seconds);
}

static void print(const double ns[SUBJECT_COUNT], const struct subjects_load *load)
{
    printf("%s  %-46s %12s  of empty%s\n", term_colour(TERM_BOLD), "one call", "time",
           term_colour(TERM_PLAIN));
    for (int kind = 0; kind < SUBJECT_COUNT; kind++)
        printf("  %-46s %9.0f ns  %5.2f\n", lines[kind].words, ns[kind], ns[kind] / ns[SUBJECT_EMPTY]);
    printf("%s  of which%s\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    for (size_t i = 0; i < PROMISES; i++)
        print_promise(&promises[i], ns);
    print_load(load);
}

static void put_number(struct json_out *out, const char *key, double n)
{
    json_key(out, key);
    json_put_double(out, n);
}

static void put_load(struct json_out *out, const struct subjects_load *load)
{
    json_key(out, "loaded");
    json_open(out, '{');
    put_number(out, "policies", (double)load->count);
    put_number(out, "policies_bytes", (double)load->policies_bytes);
    put_number(out, "tools_bytes", (double)load->tools_bytes);
    put_number(out, "seconds", load->seconds);
    json_close(out, '}');
}

static void print_json(const double ns[SUBJECT_COUNT], const struct subjects_load *load)
{
    struct buf text = {0};
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_key(&out, "ns");
    json_open(&out, '{');
    for (int kind = 0; kind < SUBJECT_COUNT; kind++)
        put_number(&out, lines[kind].name, ns[kind]);
    json_close(&out, '}');
    json_key(&out, "of_empty");
    json_open(&out, '{');
    for (int kind = 0; kind < SUBJECT_COUNT; kind++)
        put_number(&out, lines[kind].name, ns[kind] / ns[SUBJECT_EMPTY]);
    json_close(&out, '}');
    json_key(&out, "differences_ns");
    json_open(&out, '{');
    for (size_t i = 0; i < PROMISES; i++)
        put_number(&out, promises[i].name, difference(&promises[i], ns));
    json_close(&out, '}');
    if (load->count)
        put_load(&out, load);
    json_close(&out, '}');
    printf(STR_FMT "\n", STR_ARG(buf_view(&text)));
    buf_clear(&text);
}

static const char about[] =
    "What hooks cost in this process, beside a hook that does nothing: six arguments handed to Lua "
    "and read back, rules, a policy of twenty lines, a check of a call with and without it; and the "
    "memory of many policies. Rounds alternate and medians are printed. Trust the ratios more than "
    "the absolute numbers.";

static int run(const struct command *command, int argc, char **argv)
{
    unsigned policies = POLICIES_DEFAULT, seconds = 3;
    bool json = false;
    const struct cli_option table[] = {
        {"policies", "N", "how many are loaded for their memory (default: 10000)", &policies, POLICIES_MAX},
        {"seconds", "S", "for all (default: 3)", &seconds, SECONDS_MAX},
        {"json", NULL, "one JSON object", &json, 0},
        {0},
    };
    options_read(command, about, table, argc, argv);
    struct subjects *subjects;
    struct subjects_load load;
    double ns[SUBJECT_COUNT] = {0};
    struct why why = {""};
    enum err err = subjects_new(policies, &subjects, &load, &why);
    if (err == OK)
        err = measure(subjects, seconds, ns, &why);
    subjects_free(subjects);
    if (err != OK)
        term_error("%s", why.text);
    else if (json)
        print_json(ns, &load);
    else
        print(ns, &load);
    return err == OK ? CLI_OK : CLI_ERROR;
}

const struct command bench_policy = {
    .name = "policy",
    .summary = "what hooks cost beside one that does nothing, and the memory of many policies",
    .run = run,
};
