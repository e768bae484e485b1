/* toolgate test: runs the examples of policies and prints one line for each. */
#include "base/arena.h"
#include "cli/daemon_files.h"
#include "cli/local_generation.h"
#include "cli/term.h"
#include "gate/examples.h"
#include "io/file_watch.h"
#include "json/write.h"
#include "policy/coverage.h"

#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct test_options {
    struct local_options local;
    const char *const *places; /* folders and files */
    int place_count;
    const char *only, *socket;
    bool all, json; /* -v, --json */
    bool watch, cover;
    unsigned coverage_min; /* percent */
};

struct test_tally {
    struct examples_count count;
    size_t broken;             /* errors of files that do not load */
    bool expired;              /* a mode "shadow" is past its date */
    struct coverage *coverage; /* NULL: not requested */
};

static void print_details(const struct example_outcome *o)
{
    struct example_colours paint = {.expected = term_colour(TERM_RED),
                                    .got = term_colour(TERM_GREEN),
                                    .quiet = term_colour(TERM_DIM),
                                    .plain = term_colour(TERM_PLAIN)};
    struct buf text = {0};
    examples_write_text(&text, o, 6, o->passed, &paint);
    fwrite(text.at, 1, text.len, stdout);
    buf_clear(&text);
}

static void seen(void *owner, const struct example_outcome *o)
{
    const struct test_options *options = owner;
    if (options->json) {
        struct buf line = {0};
        examples_write_json(&line, o);
        printf(STR_FMT "\n", STR_ARG(buf_view(&line)));
        buf_clear(&line);
    } else if (!o->sample || !o->passed || options->all) {
        enum term_colour colour = o->passed ? TERM_GREEN : o->open ? TERM_YELLOW : TERM_RED;
        printf("%s%s%s  " STR_FMT ": %s" STR_FMT " %s(%lld µs)%s\n", term_colour(colour),
               o->passed ? "ok  "
               : o->open ? "open"
                         : "FAIL",
               term_colour(TERM_PLAIN), STR_ARG(o->policy->name), o->sample ? "sample " : "",
               STR_ARG(o->example->name), term_colour(TERM_DIM), (long long)o->us, term_colour(TERM_PLAIN));
        if (options->all || !o->passed)
            print_details(o);
    }
    fflush(stdout);
}

struct share {
    size_t hit, total;
};

static struct share lines_of(const struct coverage_file *f)
{
    struct share share = {.total = f->line_count};
    for (size_t i = 0; i < f->line_count; i++)
        share.hit += f->lines[i].hits > 0;
    return share;
}

static struct share rules_of(const struct coverage_file *f)
{
    struct share share = {.total = f->rule_count};
    for (size_t i = 0; i < f->rule_count; i++)
        share.hit += f->rules[i].hits > 0;
    return share;
}

static void print_share(struct share share)
{
    char text[32] = "-";
    if (share.total)
        snprintf(text, sizeof(text), "%zu/%zu", share.hit, share.total);
    enum term_colour colour = !share.total ? TERM_DIM : share.hit == share.total ? TERM_GREEN : TERM_YELLOW;
    printf("  %s%9s%s", term_colour(colour), text, term_colour(TERM_PLAIN));
}

static void print_row(const struct coverage_file *f, int width)
{
    struct buf missed = {0};
    struct str name = f->tool.len ? f->tool : STR_LIT("(gateway)");
    /* "12, 14-16": a range spans lines that never run, and lines without code. */
    for (size_t i = 0; i < f->line_count; i++) {
        size_t last = i;
        if (f->lines[i].hits)
            continue;
        while (last + 1 < f->line_count && !f->lines[last + 1].hits)
            last++;
        buf_printf(&missed, "%s%d", missed.len ? ", " : "", f->lines[i].line);
        if (last > i)
            buf_printf(&missed, "-%d", f->lines[last].line);
        i = last;
    }
    printf("%-*.*s  %8zu", width, (int)name.len, name.at, f->examples);
    print_share(rules_of(f));
    print_share(lines_of(f));
    if (missed.len)
        printf("  " STR_FMT ": " STR_FMT, STR_ARG(f->file), STR_ARG(buf_view(&missed)));
    printf("\n");
    for (size_t i = 0; i < f->rule_count; i++)
        if (!f->rules[i].hits)
            printf("%-*s  %8s  %9s  rule never hit: " STR_FMT "\n", width, "", "", "",
                   STR_ARG(f->rules[i].words));
    buf_clear(&missed);
}

static void print_table(const struct coverage_file *files, size_t count, struct share sum)
{
    int width = 12;
    for (size_t i = 0; i < count; i++)
        if ((int)files[i].tool.len > width && files[i].tool.len <= 48)
            width = (int)files[i].tool.len;
    printf("\n%s%-*s  %8s  %9s  %9s  not run%s\n", term_colour(TERM_BOLD), width, "policy", "examples",
           "rules", "lines", term_colour(TERM_PLAIN));
    for (size_t i = 0; i < count; i++)
        print_row(&files[i], width);
    if (sum.total)
        printf("%zu of %zu lines run, %.1f %%\n", sum.hit, sum.total,
               100.0 * (double)sum.hit / (double)sum.total);
}

static void put_share(struct json_out *out, const char *key, struct share share)
{
    json_field_open(out, key, '{');
    json_field_int(out, "hit", (int64_t)share.hit);
    json_field_int(out, "total", (int64_t)share.total);
    json_field_open(out, "missed", '[');
}

static void close_share(struct json_out *out)
{
    json_close(out, ']');
    json_close(out, '}');
}

static void print_file_json(const struct coverage_file *f)
{
    struct buf line = {0};
    struct json_out out = json_out(&line);
    json_open(&out, '{');
    json_field_text(&out, "kind", "coverage");
    json_field_str(&out, "tool", f->tool);
    json_field_str(&out, "file", f->file);
    json_field_int(&out, "examples", (int64_t)f->examples);
    put_share(&out, "rules", rules_of(f));
    for (size_t i = 0; i < f->rule_count; i++)
        if (!f->rules[i].hits)
            json_put_str(&out, f->rules[i].words);
    close_share(&out);
    put_share(&out, "lines", lines_of(f));
    for (size_t i = 0; i < f->line_count; i++)
        if (!f->lines[i].hits)
            json_put_int(&out, f->lines[i].line);
    close_share(&out);
    json_close(&out, '}');
    printf(STR_FMT "\n", STR_ARG(buf_view(&line)));
    buf_clear(&line);
}

/* CLI_NO if it is less than --coverage-min. */
static int print_coverage(const struct test_options *options, const struct coverage *coverage)
{
    size_t count;
    const struct coverage_file *files = coverage_files(coverage, &count);
    struct share sum = {0};
    for (size_t i = 0; i < count; i++) {
        struct share lines = lines_of(&files[i]);
        sum.hit += lines.hit;
        sum.total += lines.total;
        if (options->json)
            print_file_json(&files[i]);
    }
    if (!options->json)
        print_table(files, count, sum);
    if (!sum.total || sum.hit * 100 >= sum.total * options->coverage_min)
        return CLI_OK;
    term_error("test", "coverage is %zu of %zu lines, less than the %u %% of --coverage-min", sum.hit,
               sum.total, options->coverage_min);
    return CLI_NO;
}

/* A file that does not load is an error and leaves the others to be tested. */
static struct generation *build(const struct config_sources *sources, struct generation_report *report)
{
    static const struct generation_build_options options = {.skip_broken = true};
    struct config config;
    struct generation *generation = NULL;
    struct why why;
    if (config_load(sources, &config, &why) != OK) {
        generation_report_error(report, "%s", why.text);
        config_free(&config);
        return NULL;
    }
    struct generation_build *build = generation_build_begin(&config, 1, &options, report);
    while (generation_build_step(build))
        continue;
    generation_build_end(build, &generation);
    return generation;
}

static void add(struct test_tally *tally, const struct examples_count *count)
{
    tally->count.passed += count->passed;
    tally->count.failed += count->failed;
    tally->count.open += count->open;
    tally->count.samples += count->samples;
    tally->count.samples_failed += count->samples_failed;
    tally->count.unsampled += count->unsampled;
}

/* Sample calls come after the coverage is taken: they show that nothing breaks, not that it is right. */
static void run_examples(struct generation *generation, struct examples_options *run,
                         struct test_tally *tally)
{
    struct policy_set *policies = generation->policies;
    if (tally->coverage)
        coverage_begin(tally->coverage, policies);
    struct examples_count count = examples_run(generation, NULL, run);
    if (tally->coverage)
        coverage_end(tally->coverage, policies);
    add(tally, &count);
    run->samples = true;
    count = examples_run(generation, NULL, run);
    add(tally, &count);
}

/* An empty folder is a mistyped one more often than not: it must not look like success. */
static void require_policies(const struct generation *generation, struct generation_report *report)
{
    const char *folder = generation->config.policies;
    if (policy_set_count(generation->policies) || policy_set_has_gateway(generation->policies))
        return;
    report->warning_count = 0; /* they say the same of serve */
    generation_report_error(report,
                            "there is no policy to test in %s%s: name a folder or a file with policies",
                            folder ? folder : CONFIG_DEFAULT_FOLDER, folder ? "" : ", which does not exist");
}

/* `place`: a folder or a file; NULL: what the configuration names. */
static void test_place(const struct test_options *options, const char *place, struct test_tally *tally)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    struct config_sources sources = local_sources(&options->local, NULL);
    struct examples_options run = {.only = options->only, .seen = seen, .owner = (void *)options};
    if (place)
        sources.policies = place;
    generation_report_init(&report, arena);
    struct generation *generation = build(&sources, &report);
    if (generation && !report.error_count)
        require_policies(generation, &report);
    tally->broken += report.error_count;
    if (generation)
        tally->expired |= local_report_expired(generation, &report);
    fflush(stdout); /* so that errors on stderr stay in order */
    local_print_report(&report);
    if (generation)
        run_examples(generation, &run, tally);
    generation_unref(generation);
    arena_free(arena);
}

static void print_sum(const struct test_options *options, const struct test_tally *tally)
{
    const struct examples_count *count = &tally->count;
    if (options->json)
        return;
    printf("%zu passed, %zu failed", count->passed, count->failed);
    if (count->open)
        printf(", %zu open", count->open);
    size_t samples = count->samples + count->samples_failed;
    if (samples)
        printf("; %zu sample call%s", samples, samples == 1 ? "" : "s");
    if (count->samples_failed)
        printf(", %zu of them failed", count->samples_failed);
    if (count->unsampled)
        printf("; no sample call could be made for %zu", count->unsampled);
    if (tally->broken)
        printf("; files that do not load were not tested: %zu error%s", tally->broken,
               tally->broken == 1 ? "" : "s");
    printf("\n");
}

/* The operator's own specs are run by busted. */
static void point_at_specs(const struct test_options *options, const char *folder)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/*_spec.lua", folder);
    if (glob(pattern, 0, NULL, &found) == 0 && !options->json)
        printf("%zu spec%s: run busted --lua=luajit %s\n", found.gl_pathc, found.gl_pathc == 1 ? "" : "s",
               folder);
    globfree(&found);
}

static int test_all(const struct test_options *options)
{
    struct test_tally tally = {.coverage = options->cover ? coverage_new() : NULL};
    if (!options->place_count)
        test_place(options, NULL, &tally);
    for (int i = 0; i < options->place_count; i++)
        test_place(options, options->places[i], &tally);
    print_sum(options, &tally);
    if (!options->place_count && (!options->local.config || options->local.policies))
        point_at_specs(options, options->local.policies ? options->local.policies : CONFIG_DEFAULT_FOLDER);
    for (int i = 0; i < options->place_count; i++)
        point_at_specs(options, options->places[i]);
    const struct examples_count *count = &tally.count;
    bool failed = count->failed || count->samples_failed || tally.broken || tally.expired;
    /* A pattern that matches nothing was mistyped: it must not look like success. */
    if (options->only && !failed && !count->passed && !count->open && !count->samples) {
        term_error("test", "--only: no \"tool: example\" matches '%s'; without --only all are listed",
                   options->only);
        failed = true;
    }
    int status = failed ? CLI_NO : CLI_OK;
    if (tally.coverage) {
        int covered = print_coverage(options, tally.coverage);
        status = covered > status ? covered : status;
    }
    coverage_free(tally.coverage);
    return status;
}

struct watch_list {
    struct file_watch *watch;
    struct why why;
    bool failed;
};

static void watch_path(struct watch_list *w, const char *path)
{
    w->failed |= path && file_watch_add(w->watch, path, &w->why) != OK;
}

/* Of a file the whole folder: it may read a schema from there with json "…". */
static void add_place(struct watch_list *w, const char *place)
{
    const char *slash = strrchr(place, '/');
    struct stat st;
    char *folder = slash ? strndup(place, (size_t)(slash - place) + 1) : NULL;
    if (stat(place, &st) != 0 || S_ISDIR(st.st_mode))
        watch_path(w, place);
    else
        watch_path(w, folder ? folder : ".");
    free(folder);
}

/* The configuration and the files that it names, if it can be read. */
static void add_configured(struct watch_list *w, const struct local_options *local)
{
    struct config_sources sources = local_sources(local, NULL);
    struct config config;
    watch_path(w, local->config);
    if (config_load(&sources, &config, NULL) == OK) {
        add_place(w, config.policies ? config.policies : "policies");
        for (size_t i = 0; i < config.tools.count; i++)
            watch_path(w, config.tools.list[i]);
        for (size_t i = 0; i < config.mcp_configs.count; i++)
            watch_path(w, config.mcp_configs.list[i]);
    }
    config_free(&config);
}

/* Returns after a change that no further change follows. False: poll failed. */
static bool wait_for_change(struct file_watch *watch)
{
    struct pollfd ready = {.fd = file_watch_fd(watch), .events = POLLIN};
    bool changed = false;
    for (;;) {
        int n = poll(&ready, 1, changed ? (int)FILE_WATCH_QUIET_MS : -1);
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0 && changed)
            return true;
        if (n > 0)
            changed |= file_watch_drain(watch);
    }
}

/* Runs everything now and after each change; returns only if nothing can be watched. */
static int watch(const struct test_options *options)
{
    struct watch_list w = {0};
    if (file_watch_new(&w.watch, &w.why) != OK) {
        term_error("test", "%s", w.why.text);
        return CLI_ERROR;
    }
    for (int i = 0; i < options->place_count; i++)
        add_place(&w, options->places[i]);
    if (!options->place_count || options->local.config || options->local.tools.count)
        add_configured(&w, &options->local);
    if (w.failed)
        term_error("test", "%s", w.why.text);
    for (bool going = !w.failed; going; going = wait_for_change(w.watch)) {
        if (isatty(STDOUT_FILENO) && !options->json)
            printf("\033[H\033[2J\033[3J");
        test_all(options);
        if (!options->json)
            printf("%swaiting for changes; Ctrl-C ends%s\n", term_colour(TERM_DIM), term_colour(TERM_PLAIN));
        fflush(stdout);
    }
    file_watch_free(w.watch);
    return CLI_ERROR;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct test_options options = {0};
    int status;
    const struct cli_option table[] = {
        {"only", "PATTERN", "only examples whose \"tool: example\" matches; * and ? are wildcards", 0,
         OPTION_STRING, &options.only},
        {"verbose", NULL, "print the result of each, also of those that hold, and sample calls", 'v',
         OPTION_FLAG, &options.all},
        {"json", NULL, "print one JSON object a line", 'j', OPTION_FLAG, &options.json},
        {"coverage", NULL, "print which rules and lines no example reaches", 0, OPTION_FLAG, &options.cover},
        {"coverage-min", "PERCENT", "fail if the examples run fewer lines", 0, OPTION_NUMBER,
         &options.coverage_min},
        {"watch", NULL, "run again after every change", 'w', OPTION_FLAG, &options.watch},
        {"socket", "PATH", "test what the daemon there has loaded, with its servers' schemas", 's',
         OPTION_STRING, &options.socket},
        LOCAL_OPTIONS(&options.local),
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    options.places = (const char *const *)argv;
    options.place_count = argc;
    options.cover |= options.coverage_min > 0;
    struct arena *arena = arena_new();
    status = CLI_ERROR;
    if (!options.socket || daemon_files_apply(command, options.socket, arena, &options.local))
        status = options.watch ? watch(&options) : test_all(&options);
    arena_free(arena);
    return status;
}

const struct command command_test = {
    .name = "test",
    .operands = "[DIR|FILE]...",
    .summary = "run the examples of policies",
    .about =
        "Loads the policies of each DIR (default ./policies), or each FILE alone, and runs every example\n"
        "through the gate, as the daemon does before it serves a new generation. With --socket it takes\n"
        "the configuration, the policies (unless DIR or FILE are given) and the tools of a running daemon.",
    .exits = "  0  every example holds\n"
             "  1  one fails, a file does not load, a shadow_until has come, --only matches nothing, or\n"
             "     coverage is too low\n"
             "  2  usage",
    .example = "  toolgate test policies\n"
               "  toolgate test policies --coverage --watch\n"
               "  toolgate test --socket /run/toolgate/toolgate.sock\n"
               "  toolgate test policies/get_events.lua --only limit -v",
    .most = 1000,
    .run = run,
};
