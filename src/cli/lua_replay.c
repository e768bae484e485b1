/* cli.replay: replays the recordings that `toolgate replay` names. */
#include "base/arena.h"
#include "base/clock.h"
#include "cli/lua_cli.h"
#include "cli/term.h"
#include "replay/replay.h"
#include "server/state_dir.h"

#include <sys/stat.h>

#define PROGRESS_EVERY_LINES 256u
#define PROGRESS_EVERY_US    200000

struct replay_command {
    struct config_sources sources; /* without `tools`: a judge adds them, by toolset */
    const char *against, *format;
    struct arena *arena;
    struct tool_file *tools;
    size_t tool_count;
    struct judge *policies, *compared;
    struct recording *recording;
    const char **files;
    size_t file_count;
    bool mine;
};

/* ---- what is loaded ---- */

/* Where the daemon of this configuration keeps its upstreams' tools; NULL: without a configuration there are
 * none. A decision log lies in its daemon's state folder, which systemd may have given: the configuration
 * does not know it then, and a folder beside a recording is taken. */
static const char *upstreams_folder(struct replay_command *c, const struct config_sources *sources)
{
    struct config config = {0};
    const char *folder = NULL;
    if (!sources->file ||
        config_load(sources, &config, NULL) != OK) { /* the judge reports why it does not load */
        config_free(&config);
        return NULL;
    }
    for (size_t i = 0; !folder && !state_dir_is_given(&config) && i < c->file_count; i++) {
        const char *slash = strrchr(c->files[i], '/');
        int len = slash ? (int)(slash - c->files[i]) + 1 : 0;
        const char *beside = arena_printf(c->arena, "%.*supstreams", len, c->files[i]).at;
        struct stat st;
        if (stat(beside, &st) == 0 && S_ISDIR(st.st_mode))
            folder = beside;
    }
    if (!folder)
        folder = state_dir_path(c->arena, &config, "upstreams");
    config_free(&config);
    return folder;
}

static struct judge *load(struct replay_command *c, const char *policies)
{
    struct generation_report report;
    struct config_sources sources = c->sources;
    sources.policies = policies;
    struct judge_options options = {.sources = &sources,
                                    .no_policies = !policies && !sources.file,
                                    .upstreams = upstreams_folder(c, &sources),
                                    .tools = c->tools,
                                    .tool_file_count = c->tool_count};
    generation_report_init(&report, c->arena);
    struct judge *judge = judge_new(&options, &report);
    if (judge)
        return judge;
    report.warning_count = 0;
    lua_cli_print_report(&report);
    term_error("nothing was replayed: fix the errors above");
    return NULL;
}

/* ---- progress ---- */

struct progress {
    lua_State *L;
    int64_t last_us;
    uint64_t lines;
};

/* Calls the option `progress`, a function, with the bytes that were read, and all; 0: not known. */
static void show_progress(void *owner, const struct recording *recording)
{
    struct progress *progress = owner;
    if (++progress->lines % PROGRESS_EVERY_LINES != 0)
        return;
    uint64_t total, position = recording_position(recording, &total);
    int64_t now_us = clock_mono_us();
    if (now_us - progress->last_us < PROGRESS_EVERY_US)
        return;
    progress->last_us = now_us;
    lua_getfield(progress->L, 1, "progress");
    lua_pushnumber(progress->L, (lua_Number)position);
    lua_pushnumber(progress->L, (lua_Number)total);
    lua_call(progress->L, 2, 0);
}

/* ---- the command ---- */

static bool open_all(struct replay_command *c, enum recorded_format *format)
{
    struct recording_options options = {.documents = true, .lenient = c->mine};
    struct why why;
    *format = RECORDED_ANY;
    if (c->format && !recorded_format_named(str_of(c->format), format)) {
        term_error("--format: expected decisions, ndjson, openai, anthropic or mcp, got '%s'", c->format);
        return false;
    }
    c->tool_count = c->sources.tools_count;
    c->tools = ARENA_ARRAY(c->arena, struct tool_file, c->tool_count + 1);
    for (size_t i = 0; i < c->tool_count; i++)
        if (tool_file_read(c->arena, c->sources.tools[i], &c->tools[i], &why) != OK) {
            term_error("--tools: %s", why.text);
            return false;
        }
    c->sources.tools = NULL;
    c->sources.tools_count = 0;
    if (recording_open(c->files, c->file_count, &options, &c->recording, &why) != OK) {
        term_error("%s", why.text);
        return false;
    }
    log_open(LOG_ERROR, LOG_FORMAT_TEXT, NULL, NULL); /* decisions go to the report, not to the log */
    c->policies = load(c, c->sources.policies);
    c->compared = c->policies && c->against ? load(c, c->against) : NULL;
    return c->policies && (!c->against || c->compared);
}

int lua_replay(lua_State *L)
{
    enum recorded_format format;
    struct replay_report report;
    struct replay_command c = {
        .arena = arena_new(), .against = lua_cli_option(L, "against"), .format = lua_cli_option(L, "format")};
    c.mine = lua_cli_flag(L, "mine");
    c.sources = lua_cli_sources(L, c.arena);
    c.files = lua_cli_list(L, NULL, c.arena, &c.file_count);
    bool opened = open_all(&c, &format);
    if (opened) {
        struct progress progress = {.L = L, .last_us = clock_mono_us()};
        struct replay_options options = {.recording = c.recording,
                                         .format = format,
                                         .transcript = lua_transcript_read,
                                         .transcripts = L,
                                         .policies = c.policies,
                                         .against = c.compared,
                                         .line_read = lua_cli_flag(L, "progress") ? show_progress : NULL,
                                         .owner = &progress};
        replay_run(&options, c.arena, &report);
        report.policies = c.sources.policies ? c.sources.policies : c.sources.file;
        report.against = c.against;
        struct buf views = buf_in(c.arena), text = buf_in(c.arena);
        replay_report_json(&report, true, &views);
        replay_report_json(&report, false, &text);
        lua_cli_push_str(L, buf_view(&views));
        lua_cli_push_str(L, buf_view(&text));
    }
    judge_free(c.policies);
    judge_free(c.compared);
    recording_close(c.recording);
    arena_free(c.arena);
    return opened ? 2 : lua_cli_end(L);
}
