/* Expands what the configuration says, builds the environment (inherited variables first, then those of the
 * spec), finds the user, and logs what a best_effort sandbox lacks. */
#include "upstream/process.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/trace_context.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static bool has_name(const struct name_values *pairs, struct str name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (str_eq(pairs->list[i].name, name))
            return true;
    return false;
}

enum err environment_build(struct arena *arena, const char *inherited, const struct name_values *pairs,
                           const struct trace_context *trace, struct secrets *used, const char *const **out,
                           struct why *why)
{
    static const struct str trace_names[] = {[TRACE_PARENT] = STR("TRACEPARENT"),
                                             [TRACE_STATE] = STR("TRACESTATE"),
                                             [TRACE_BAGGAGE] = STR("BAGGAGE")};
    const char **list =
        ARENA_ARRAY(arena, const char *, pairs->count + strlen(inherited) / 2 + TRACE_KEYS + 3);
    size_t count = 0;
    enum err err = OK;
    bool has_path = has_name(pairs, STR_LIT("PATH"));
    for (const char *at = inherited; *at; at += strspn(at, " ")) {
        struct str name = arena_dup(arena, (struct str){at, strcspn(at, " ")});
        const char *value = getenv(name.at);
        at += name.len;
        if (!value || has_name(pairs, name))
            continue;
        has_path |= str_is(name, "PATH");
        list[count++] = ARENA_JOIN(arena, name, STR_LIT("="), str_of(value)).at;
    }
    if (!has_path)
        list[count++] = "PATH=" DEFAULT_PATH;
    for (size_t i = 0; i < pairs->count && !err; i++) {
        struct str value, name = pairs->list[i].name;
        err = secrets_expand(arena, pairs->list[i].value, used, &value, why);
        if (!err && str_has(value, '\0'))
            err = err_set(why, ERR_PARSE, "the value holds a NUL byte");
        if (err)
            err_prefix(why, arena_printf(arena, "env." STR_FMT, STR_ARG(str_cut(name, 100))).at);
        else
            list[count++] = ARENA_JOIN(arena, name, STR_LIT("="), value).at;
        if (!err)
            secrets_add_named(arena, used, name, value);
    }
    for (unsigned i = 0; trace && i < TRACE_KEYS; i++)
        if (trace->values[i].len && !has_name(pairs, trace_names[i]))
            list[count++] = ARENA_JOIN(arena, trace_names[i], STR_LIT("="), trace->values[i]).at;
    *out = list;
    return err;
}

enum err environment_find_command(struct arena *arena, const struct upstream_spec *spec, struct why *why)
{
    char found[PATH_MAX];
    if (spec->spawner.len)
        return OK; /* the spawner finds it */
    struct str name = spec->argv[0];
    const char *inherited = getenv("PATH");
    struct str path = str_of(inherited ? inherited : DEFAULT_PATH);
    for (size_t i = spec->env.count; i-- > 0;)
        if (str_is(spec->env.list[i].name, "PATH"))
            path = spec->env.list[i].value;
    const char *argv[] = {arena_dup(arena, name).at, NULL};
    const char *env[] = {arena_printf(arena, "PATH=" STR_FMT, STR_ARG(path)).at, NULL};
    struct child_spec child = {.argv = argv, .env = env};
    if (memmem(name.at, name.len, "${", 2))
        return OK;
    enum err err = child_find_program(&child, found, why);
    bool relative = found[0] != '/' && spec->cwd.len;
    const char *file = relative ? arena_printf(arena, STR_FMT "/%s", STR_ARG(spec->cwd), found).at : found;
    if (err == OK && access(file, X_OK) != 0)
        err = err_set(why, ERR_NOT_FOUND, "cannot run '%s': %s", file, strerror(errno));
    return err;
}

/* ---- the process of a server ---- */

static enum err expand(struct arena *arena, struct str text, struct secrets *secrets, const char **out,
                       struct why *why)
{
    struct str expanded;
    enum err err = secrets_expand(arena, text, secrets, &expanded, why);
    if (!err)
        *out = arena_dup(arena, expanded).at;
    return err;
}

enum err process_prepare(struct loop *loop, struct arena *arena, const struct upstream_spec *spec,
                         struct secrets *secrets, struct process *process, struct why *why)
{
    /* What the MCP SDKs pass on, and what selects a program's language, time zone and folders. */
    static const char unconfined[] =
        "HOME LOGNAME PATH SHELL TERM USER LANG LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY "
        "LC_NUMERIC LC_TIME TZ TMPDIR XDG_CACHE_HOME XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_DATA_DIRS "
        "XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME";
    const struct confine_spec *sandbox = &spec->sandbox;
    const char **argv = ARENA_ARRAY(arena, const char *, spec->argc + 1);
    struct child_spec *child = &process->child;
    struct confinement *confinement = &process->confinement;
    struct buf inherited = buf_in(arena);
    *process = (struct process){.child = {.argv = argv}, .confinement = {.child = {.landlock = -1}}};
    buf_text(&inherited, sandbox->on ? "PATH LANG LC_ALL TZ" : unconfined);
    for (size_t i = 0; sandbox->on && i < sandbox->env.count; i++)
        buf_printf(&inherited, " " STR_FMT, STR_ARG(sandbox->env.list[i]));
    buf_byte(&inherited, '\0');
    enum err err = environment_build(arena, inherited.at, &spec->env, NULL, secrets, &child->env, why);
    for (size_t i = 0; i < spec->argc && !err; i++)
        err = expand(arena, spec->argv[i], secrets, &argv[i], why);
    for (size_t i = 0; i < spec->argc && !err; i++) { /* --token=…, TOKEN=…, --token … */
        struct str text = str_of(argv[i]), value = text, name = str_split(&value, '=');
        if (str_starts(name, "-") && !value.len && i + 1 < spec->argc && *argv[i + 1] != '-')
            value = str_of(argv[i + 1]);
        else if (!value.len || (!str_starts(name, "-") && str_has(name, ':'))) {
            value = text; /* an address, a header, or the name of a variable, as in docker run -e TOKEN */
            name = STR_LIT("");
        }
        secrets_add_named(arena, secrets, name, value);
    }
    if (!err && spec->cwd.len)
        err = expand(arena, spec->cwd, secrets, &child->cwd, why);
    const struct passwd *user = !err && spec->user.len ? getpwnam(arena_dup(arena, spec->user).at) : NULL;
    if (!err && spec->user.len && !user)
        err = err_set(why, ERR_NOT_FOUND,
                      "no user '" STR_FMT "': create it, or correct upstreams." STR_FMT ".user",
                      STR_ARG(spec->user), STR_ARG(spec->name));
    if (user) {
        process->identity = (struct child_identity){user->pw_uid, user->pw_gid};
        child->identity = &process->identity;
    }
    if (err || !sandbox->on)
        return err;
    /* An interpreter's script: the first argument that is no option, if it is the absolute path of a file. */
    const char *const *word = argv + (argv[0] != NULL);
    struct stat info;
    while (*word && **word == '-')
        word++;
    bool script = *word && **word == '/' && stat(*word, &info) == 0 && S_ISREG(info.st_mode);
    err = confine_prepare(loop, arena, sandbox, child, script ? *word : NULL, confinement, why);
    child->confinement = &confinement->child;
    child->limits.memory_bytes = sandbox->memory_bytes ? sandbox->memory_bytes : CONFINE_MEMORY_BYTES;
    child->limits.processes = sandbox->processes;
    if (!err && confinement->missing.len)
        log_event(LOG_WARN, "sandbox_incomplete", LOG_STR("upstream", spec->name),
                  LOG_STR("missing", confinement->missing));
    if (!err && confinement->narrowed.len)
        log_event(LOG_INFO, "sandbox_narrowed", LOG_STR("upstream", spec->name),
                  LOG_STR("read", confinement->narrowed),
                  LOG_TEXT("effect",
                           "toolgate's configuration, policies, secrets and state in it stay hidden, "
                           "and the folders that hold them cannot be listed"));
    return err;
}

void process_clear(struct process *process)
{
    confine_free(&process->confinement);
}
