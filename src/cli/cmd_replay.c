/* toolgate replay: what the gateway would have said of recorded calls. */
#include "base/arena.h"
#include "base/clock.h"
#include "cli/local_generation.h"
#include "cli/term.h"
#include "replay/replay.h"
#include "replay/report_text.h"
#include "state/state_dir.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRESS_EVERY_LINES 256u
#define PROGRESS_EVERY_US    200000
#define PROGRESS_WIDTH       30

struct replay_command {
    const struct command *command;
    struct local_options local;
    const char *against, *format, *html;
    bool json, markdown, fail_on_new, allow_unjudged;
    struct arena *arena;
    struct tool_file tools[OPTIONS_LIST_MAX];
    struct judge *policies, *compared;
    struct recording *recording;
    const char *const *files;
    size_t file_count;
};

/* ---- what is loaded ---- */

static bool read_tools(struct replay_command *c)
{
    struct why why;
    for (size_t i = 0; i < c->local.tools.count; i++)
        if (tool_file_read(c->arena, c->local.tools.items[i], &c->tools[i], &why) != OK) {
            term_error(c->command->name, "--tools: %s", why.text);
            return false;
        }
    return true;
}

/* A decision log lies in its daemon's state folder, which systemd may have given: the configuration does not
 * know it. NULL: no such folder lies beside a recording. */
static const char *upstreams_beside_files(const struct replay_command *c)
{
    for (size_t i = 0; i < c->file_count; i++) {
        const char *slash = strrchr(c->files[i], '/');
        int len = slash ? (int)(slash - c->files[i]) + 1 : 0;
        const char *folder = arena_printf(c->arena, "%.*supstreams", len, c->files[i]).at;
        struct stat st;
        if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
            return folder;
    }
    return NULL;
}

/* Where the daemon of this configuration keeps its upstreams' tools; NULL: without a configuration there are
 * none. */
static const char *upstreams_folder(struct replay_command *c, const struct config_sources *sources)
{
    struct config config;
    const char *folder = NULL;
    if (c->local.config && config_load(sources, &config, NULL) == OK) {
        const char *beside = state_dir_is_given(&config) ? NULL : upstreams_beside_files(c);
        folder = beside ? beside : state_dir_path(c->arena, &config, "upstreams");
        config_free(&config);
    } else if (c->local.config) {
        config_free(&config); /* the judge reports why it does not load */
    }
    return folder;
}

static struct judge *load(struct replay_command *c, const char *policies)
{
    struct generation_report report;
    struct config_sources sources = local_sources(&c->local, NULL);
    sources.policies = policies;
    sources.tools = NULL; /* the judge adds them, by toolset */
    sources.tools_count = 0;
    struct judge_options options = {.sources = &sources,
                                    .no_policies = !policies && !c->local.config,
                                    .upstreams = upstreams_folder(c, &sources),
                                    .tools = c->tools,
                                    .tool_file_count = c->local.tools.count};
    generation_report_init(&report, c->arena);
    struct judge *judge = judge_new(&options, &report);
    if (judge)
        return judge;
    report.warning_count = 0;
    local_print_report(&report);
    term_error(c->command->name, "nothing was replayed: fix the errors above");
    return NULL;
}

/* ---- progress ---- */

struct progress {
    bool shown;
    int64_t last_us;
    uint64_t lines;
};

static void show_progress(struct progress *progress, const struct recording *recording)
{
    uint64_t total, position = recording_position(recording, &total);
    int64_t now_us = clock_mono_us();
    char bar[PROGRESS_WIDTH + 1];
    if (now_us - progress->last_us < PROGRESS_EVERY_US)
        return;
    progress->last_us = now_us;
    progress->shown = true;
    int filled = total ? (int)(position * PROGRESS_WIDTH / total) : 0;
    for (int i = 0; i < PROGRESS_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[PROGRESS_WIDTH] = '\0';
    if (total)
        fprintf(stderr, "\r[%s] %3llu %%  %llu MB", bar, (unsigned long long)(position * 100 / total),
                (unsigned long long)(position / 1000000));
    else
        fprintf(stderr, "\r%llu MB", (unsigned long long)(position / 1000000));
    fflush(stderr);
}

static void replay_all(struct replay_command *c, struct replay *replay)
{
    struct progress progress = {.last_us = clock_mono_us()};
    bool terminal = isatty(STDERR_FILENO);
    while (replay_next(replay))
        if (terminal && ++progress.lines % PROGRESS_EVERY_LINES == 0)
            show_progress(&progress, c->recording);
    if (progress.shown)
        fprintf(stderr, "\r\033[K");
}

/* ---- the report ---- */

static void print_report(const struct replay_command *c, const struct replay_report *report)
{
    struct report_colours colours = {.plain = term_colour(TERM_PLAIN),
                                     .bold = term_colour(TERM_BOLD),
                                     .dim = term_colour(TERM_DIM),
                                     .red = term_colour(TERM_RED),
                                     .green = term_colour(TERM_GREEN),
                                     .yellow = term_colour(TERM_YELLOW)};
    struct buf text = {0};
    if (c->json) {
        replay_report_json(report, &text);
        buf_byte(&text, '\n');
    } else if (c->markdown) {
        replay_report_markdown(report, &text);
    } else {
        report_text(report, &colours, &text);
    }
    if (text.len) /* an empty recording has no text */
        fwrite(text.at, 1, text.len, stdout);
    buf_clear(&text);
}

static bool write_page(const struct replay_command *c, const struct replay_report *report)
{
    struct buf text = {0};
    replay_report_html(report, &text);
    FILE *file = fopen(c->html, "we");
    bool written = file && fwrite(text.at, 1, text.len, file) == text.len;
    written = file && fclose(file) == 0 && written;
    if (!written)
        term_error(c->command->name, "--html: %s: %s", c->html, strerror(errno));
    buf_clear(&text);
    return written;
}

static int exit_code(const struct replay_command *c, const struct replay_report *report)
{
    if (!report->calls) {
        term_error(c->command->name, "no call could be replayed: %s",
                   report->lines ? "none of the lines is a call" : "no line could be read");
        return CLI_ERROR;
    }
    if (c->fail_on_new && report->changed[REPLAY_NEW_REFUSAL])
        return CLI_NO;
    if (c->fail_on_new && report->unjudged && !c->allow_unjudged) {
        term_error(
            c->command->name,
            "of %llu call%s the result was not recorded: output schemas and result hooks were not judged; "
            "record them with decisions = { results = \"masked\" }, or accept that with --allow-unjudged",
            (unsigned long long)report->unjudged, report->unjudged == 1 ? "" : "s");
        return CLI_ERROR;
    }
    return CLI_OK;
}

static int replay_files(struct replay_command *c, enum recorded_format format)
{
    struct replay_report report;
    struct replay_options options = {
        .recording = c->recording, .format = format, .policies = c->policies, .against = c->compared};
    replay_report_init(&report, c->arena);
    report.policies = c->local.policies ? c->local.policies : c->local.config;
    report.against = c->against;
    struct replay *replay = replay_new(&options, &report);
    replay_all(c, replay);
    replay_finish(replay);
    print_report(c, &report);
    bool written = !c->html || write_page(c, &report);
    replay_free(replay);
    return written ? exit_code(c, &report) : CLI_ERROR;
}

/* ---- the command ---- */

static bool read_format(const struct replay_command *c, enum recorded_format *format)
{
    *format = RECORDED_ANY;
    if (!c->format || recorded_format_named(str_of(c->format), format))
        return true;
    term_error(c->command->name, "--format: expected decisions, ndjson, openai, anthropic or mcp, got '%s'",
               c->format);
    return false;
}

static int replay_command(struct replay_command *c, int argc, char **argv)
{
    struct recording_options options = {.documents = true};
    enum recorded_format format;
    struct why why;
    if (c->fail_on_new && !c->against) {
        term_error(c->command->name,
                   "--fail-on-new compares two sets of policies: name the other with --against DIR");
        return CLI_ERROR;
    }
    if (!read_format(c, &format) || !read_tools(c))
        return CLI_ERROR;
    if (recording_open((const char *const *)argv, (size_t)argc, &options, &c->recording, &why) != OK) {
        term_error(c->command->name, "%s", why.text);
        return CLI_ERROR;
    }
    c->files = (const char *const *)argv;
    c->file_count = (size_t)argc;
    log_open(LOG_ERROR, LOG_FORMAT_TEXT, NULL, NULL); /* decisions go to the report, not to the log */
    c->policies = load(c, c->local.policies);
    c->compared = c->policies && c->against ? load(c, c->against) : NULL;
    if (!c->policies || (c->against && !c->compared))
        return CLI_ERROR;
    return replay_files(c, format);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct replay_command c = {.command = command};
    int status;
    const struct cli_option table[] = {
        {"policies", "DIR", "the folder of policies (default: the configuration's, else none)", 'p',
         OPTION_STRING, &c.local.policies},
        {"against", "DIR", "other policies: every call whose verdict they change", 'a', OPTION_STRING,
         &c.against},
        {"config", "FILE", "the configuration, a Lua file", 'c', OPTION_STRING, &c.local.config},
        {"tools", "FILE",
         "tool definitions (MCP, OpenAI, Anthropic); TOOLSET=FILE for records of a `toolset`", 't',
         OPTION_LIST, &c.local.tools},
        {"format", "FORMAT", "decisions, ndjson, openai, anthropic or mcp (default: found out)", 'f',
         OPTION_STRING, &c.format},
        {"json", NULL, "print one JSON document", 'j', OPTION_FLAG, &c.json},
        {"markdown", NULL, "print Markdown", 0, OPTION_FLAG, &c.markdown},
        {"html", "FILE", "also write one self-contained page with charts", 0, OPTION_STRING, &c.html},
        {"fail-on-new", NULL, "exit 1 if --against refuses a call that --policies passes", 0, OPTION_FLAG,
         &c.fail_on_new},
        {"allow-unjudged", NULL, "with --fail-on-new: results that were not recorded are no error", 0,
         OPTION_FLAG, &c.allow_unjudged},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    c.arena = arena_new();
    status = replay_command(&c, argc, argv);
    judge_free(c.policies);
    judge_free(c.compared);
    recording_close(c.recording);
    arena_free(c.arena);
    return status;
}

const struct command command_replay = {
    .name = "replay",
    .operands = "FILE...",
    .summary = "say what the gateway would have said of recorded calls",
    .about =
        "Replays recorded sessions with a virtual clock and the recorded results: no tool runs. FILE is a\n"
        "decision log, NDJSON of {session, tool, arguments, result}, OpenAI or Anthropic messages, or MCP's\n"
        "JSON-RPC; - is stdin. With --against, every call whose verdict changes is listed by tool and code.",
    .exits = "  0  replayed\n"
             "  1  with --fail-on-new: --against refuses a call that --policies passes\n"
             "  2  usage, a file that cannot be read, no call that could be replayed;\n"
             "     with --fail-on-new: rules for results, and results that were not recorded",
    .example = "  toolgate replay --format openai run.json --tools tools.json\n"
               "  toolgate replay decisions.ndjson --policies policies --against stricter --fail-on-new",
    .least = 1,
    .most = 100000,
    .run = run,
};
