/* Expands what the configuration says, finds its user, and logs what a best_effort sandbox lacks. */
#include "upstream/process.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "upstream/environment.h"

#include <pwd.h>

static enum err expand(struct arena *arena, struct str text, struct secrets *secrets, const char **out,
                       struct why *why)
{
    struct str expanded;
    enum err err = secrets_expand(arena, text, secrets, &expanded, why);
    if (!err)
        *out = arena_dup(arena, expanded).at;
    return err;
}

/* What a confined process inherits: how it speaks and where programs are, and what its sandbox names. */
static const char *inherited_by(struct arena *arena, const struct confine_spec *sandbox)
{
    /* What the MCP SDKs pass on, and what selects a program's language, time zone and folders. */
    static const char unconfined[] =
        "HOME LOGNAME PATH SHELL TERM USER LANG LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY "
        "LC_NUMERIC LC_TIME TZ TMPDIR XDG_CACHE_HOME XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_DATA_DIRS "
        "XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME";
    struct buf names = buf_in(arena);
    if (!sandbox->on)
        return unconfined;
    buf_text(&names, "PATH LANG LC_ALL TZ");
    for (size_t i = 0; i < sandbox->env.count; i++)
        buf_printf(&names, " " STR_FMT, STR_ARG(sandbox->env.list[i]));
    return arena_dup(arena, buf_view(&names)).at;
}

static enum err confine(struct loop *loop, struct arena *arena, const struct upstream_spec *spec,
                        struct process *process, struct why *why)
{
    const struct confine_spec *sandbox = &spec->sandbox;
    struct child_spec *child = &process->child;
    enum err err =
        confine_prepare(loop, arena, sandbox, child, confine_script(child), &process->confinement, why);
    child->confinement = &process->confinement.child;
    child->limits = confine_limits(sandbox);
    if (!err && process->confinement.missing.len)
        log_event(LOG_WARN, "sandbox_incomplete", LOG_STR("upstream", spec->name),
                  LOG_STR("missing", process->confinement.missing));
    if (!err && process->confinement.narrowed.len)
        log_event(LOG_INFO, "sandbox_narrowed", LOG_STR("upstream", spec->name),
                  LOG_STR("read", process->confinement.narrowed),
                  LOG_TEXT("effect",
                           "toolgate's configuration, policies, secrets and state in it stay hidden, "
                           "and the folders that hold them cannot be listed"));
    return err;
}

static enum err find_identity(struct arena *arena, const struct upstream_spec *spec, struct process *process,
                              struct why *why)
{
    if (!spec->user.len)
        return OK;
    const struct passwd *user = getpwnam(arena_dup(arena, spec->user).at);
    if (!user)
        return err_set(why, ERR_NOT_FOUND,
                       "no user '" STR_FMT "': create it, or correct upstreams." STR_FMT ".user",
                       STR_ARG(spec->user), STR_ARG(spec->name));
    process->identity = (struct child_identity){user->pw_uid, user->pw_gid};
    process->child.identity = &process->identity;
    return OK;
}

enum err process_prepare(struct loop *loop, struct arena *arena, const struct upstream_spec *spec,
                         struct secrets *secrets, struct process *process, struct why *why)
{
    const char **argv = ARENA_ARRAY(arena, const char *, spec->argc + 1);
    struct child_spec *child = &process->child;
    *process = (struct process){.child = {.argv = argv}, .confinement = {.child = {.landlock = -1}}};
    enum err err =
        environment_build(arena, inherited_by(arena, &spec->sandbox), &spec->env, secrets, &child->env, why);
    for (size_t i = 0; i < spec->argc && !err; i++)
        err = expand(arena, spec->argv[i], secrets, &argv[i], why);
    if (!err && spec->cwd.len)
        err = expand(arena, spec->cwd, secrets, &child->cwd, why);
    if (!err)
        err = find_identity(arena, spec, process, why);
    return err || !spec->sandbox.on ? err : confine(loop, arena, spec, process, why);
}

void process_clear(struct process *process)
{
    confine_free(&process->confinement);
}
