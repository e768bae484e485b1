/*
 * toolgate-bench socket: what a full verdict costs beside the same socket code
 * that only echoes. Rounds alternate, and the median round is printed, so that
 * a busy host disturbs both alike.
 */
#include "cli/command.h"
#include "options.h"
#include "cli/term.h"
#include "daemon.h"
#include "json/write.h"
#include "load.h"

#include <stdio.h>
#include <stdlib.h>

#define BENCH_ROUNDS 3u

struct bench_options {
    unsigned connections, depth; /* 0: not given */
    unsigned seconds;            /* for each line of the result */
    const char *redis;           /* where the judging daemon's ledger is; NULL: its own */
    bool json;
};

struct bench_kind {
    const char *name, *method, *wanted;
    enum bench_role role;
};

static const struct bench_kind kinds[] = {
    {"echo", "toolgate/check", NULL, BENCH_ECHO},
    {"check", "toolgate/check", "\"verdict\":\"pass\"", BENCH_GATE},
    {"recorded", "toolgate/check", "\"verdict\":\"pass\"", BENCH_RECORDED},
    {"call", "tools/call", "Review of the quarter", BENCH_GATE},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct bench_shape {
    unsigned connections, depth;
};

struct sample {
    struct load_result load;
    double rate, cpu_us; /* answers a second; the daemon's CPU time an answer, 0: not known */
};

struct bench {
    const struct bench_options *options;
    struct bench_daemon daemons[BENCH_ROLES];
    struct json_out *out; /* --json */
};

/* ---- measuring ---- */

static enum err measure(struct bench *bench, const struct bench_kind *kind, struct bench_shape shape,
                        struct sample *sample, struct why *why)
{
    const struct bench_daemon *daemon = &bench->daemons[kind->role];
    struct load load = {
        .socket = daemon->socket,
        .method = kind->method,
        .wanted = kind->wanted,
        .connections = shape.connections,
        .depth = shape.depth,
        .seconds = (double)bench->options->seconds / BENCH_ROUNDS,
    };
    int64_t before = bench_daemon_cpu_ns(daemon);
    enum err err = load_run(&load, &sample->load, why);
    int64_t cpu = bench_daemon_cpu_ns(daemon) - before;
    if (err != OK)
        return err;
    if (sample->load.unwanted || !sample->load.answers)
        return err_set(why, ERR_UNAVAILABLE, "%s: %llu of %llu answers were not a pass; the first: %s",
                       kind->name, (unsigned long long)sample->load.unwanted,
                       (unsigned long long)sample->load.answers, sample->load.sample);
    sample->rate = (double)sample->load.answers / sample->load.seconds;
    sample->cpu_us = (double)cpu / 1000 / (double)sample->load.all_answers;
    return OK;
}

static int by_rate(const void *a, const void *b)
{
    double x = ((const struct sample *)a)->rate, y = ((const struct sample *)b)->rate;
    return (x > y) - (x < y);
}

/* All kinds, round by round; `medians` holds one of each. */
static enum err measure_shape(struct bench *bench, struct bench_shape shape, struct sample medians[KINDS],
                              struct why *why)
{
    struct sample samples[KINDS][BENCH_ROUNDS];
    for (unsigned round = 0; round < BENCH_ROUNDS; round++)
        for (size_t k = 0; k < KINDS; k++) {
            enum err err = measure(bench, &kinds[k], shape, &samples[k][round], why);
            if (err != OK)
                return err;
        }
    for (size_t k = 0; k < KINDS; k++) {
        qsort(samples[k], BENCH_ROUNDS, sizeof(samples[k][0]), by_rate);
        medians[k] = samples[k][BENCH_ROUNDS / 2];
    }
    return OK;
}

/* ---- telling ---- */

static void print_shape(struct bench_shape shape, const struct sample medians[KINDS])
{
    printf("%s%u connections x %u in flight%s\n", term_colour(TERM_BOLD), shape.connections, shape.depth,
           term_colour(TERM_PLAIN));
    for (size_t k = 0; k < KINDS; k++) {
        const struct sample *s = &medians[k];
        printf("  %-8s %10.0f msg/s   p50 %5.0f µs   p99 %5.0f µs   CPU %6.2f µs/msg   %.3f of echo\n",
               kinds[k].name, s->rate, s->load.p50_us, s->load.p99_us, s->cpu_us, s->rate / medians[0].rate);
    }
}

static void put_number(struct json_out *out, const char *key, double n)
{
    json_key(out, key);
    json_put_double(out, n);
}

static void put_shape(struct json_out *out, struct bench_shape shape, const struct sample medians[KINDS])
{
    json_open(out, '{');
    put_number(out, "connections", shape.connections);
    put_number(out, "depth", shape.depth);
    for (size_t k = 0; k < KINDS; k++) {
        json_key(out, kinds[k].name);
        json_open(out, '{');
        put_number(out, "msgs_per_s", medians[k].rate);
        put_number(out, "p50_us", medians[k].load.p50_us);
        put_number(out, "p99_us", medians[k].load.p99_us);
        put_number(out, "cpu_us", medians[k].cpu_us);
        put_number(out, "of_echo", medians[k].rate / medians[0].rate);
        json_close(out, '}');
    }
    json_close(out, '}');
}

static enum err run_shapes(struct bench *bench, struct why *why)
{
    const struct bench_options *options = bench->options;
    bool chosen = options->connections || options->depth;
    struct bench_shape shapes[] = {{16, 1}, {16, 16}};
    size_t count = chosen ? 1 : 2;
    if (chosen)
        shapes[0] = (struct bench_shape){options->connections ? options->connections : 16,
                                         options->depth ? options->depth : 1};
    for (size_t i = 0; i < count; i++) {
        struct sample medians[KINDS];
        enum err err = measure_shape(bench, shapes[i], medians, why);
        if (err != OK)
            return err;
        if (options->json)
            put_shape(bench->out, shapes[i], medians);
        else
            print_shape(shapes[i], medians);
    }
    return OK;
}

static enum err run_beside_echo(struct bench *bench, struct why *why)
{
    struct bench_folder folder;
    enum err err = bench_folder_make(&folder, why);
    for (int role = 0; !err && role < BENCH_ROLES; role++)
        err =
            bench_daemon_start(&folder, (enum bench_role)role,
                               role == BENCH_ECHO ? NULL : bench->options->redis, &bench->daemons[role], why);
    if (err == OK)
        err = run_shapes(bench, why);
    for (int role = 0; role < BENCH_ROLES; role++)
        bench_daemon_stop(&bench->daemons[role]);
    bench_folder_drop(&folder);
    return err;
}

static int report(const struct bench *bench, enum err err, const struct why *why)
{
    if (err != OK) {
        term_error("%s", why->text);
        return CLI_ERROR;
    }
    if (bench->options->json)
        printf(STR_FMT "\n", STR_ARG(buf_view(bench->out->buf)));
    return CLI_OK;
}

static const char about[] =
    "Starts toolgate ($TOOLGATE, else the program beside this one) and an echo of each line in a "
    "temporary folder, and loads them in turn: toolgate/check (schema, rules, check, local ledger), "
    "the same with the decision log, which is off for the others (\"recorded\"), and tools/call (the "
    "same, run and committed). Every answer must be a pass. Rounds alternate and "
    "medians are printed. Trust the ratios more than the absolute numbers.";

static int run(const struct command *command, int argc, char **argv)
{
    struct bench_options options = {.seconds = 3};
    const struct cli_option table[] = {
        {"connections", "N", "connections (default: 16)", &options.connections, LOAD_CONNECTIONS_MAX},
        {"depth", "N", "requests in flight on each (default: 1, then 16)", &options.depth, LOAD_DEPTH_MAX},
        {"seconds", "S", "for each line of the result (default: 3)", &options.seconds, SECONDS_MAX},
        {"redis", "URL", "the judging daemon keeps its ledger there", &options.redis, 0},
        {"json", NULL, "one JSON object", &options.json, 0},
        {0},
    };
    options_read(command, about, table, argc, argv);
    struct buf text = {0};
    struct json_out out = json_out(&text);
    struct bench bench = {.options = &options, .out = &out};
    struct why why;
    json_open(&out, '{');
    json_key(&out, "runs");
    json_open(&out, '[');
    enum err err = run_beside_echo(&bench, &why);
    json_close(&out, ']');
    json_close(&out, '}');
    int status = report(&bench, err, &why);
    buf_clear(&text);
    return status;
}

const struct command bench_socket = {
    .name = "socket",
    .summary = "verdicts a second beside an echo through the same socket code",
    .run = run,
};
