/* Puts a confinement together, and says what is missing. */
#include "upstream/confine/confine.h"

#include "base/arena.h"
#include "base/buf.h"
#include "upstream/confine/confine_internal.h"
#include "io/conn.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct hidden_paths { /* of one loop */
    struct arena *arena;
    struct str *list;
    size_t count;
};

static const char singleton_key;

static void *make_hidden(struct loop *loop)
{
    struct hidden_paths *hidden = calloc(1, sizeof(*hidden));
    (void)loop;
    if (!hidden)
        abort();
    hidden->arena = arena_new();
    return hidden;
}

static void free_hidden(void *object)
{
    struct hidden_paths *hidden = object;
    arena_free(hidden->arena);
    free(hidden);
}

/* Landlock sees real paths. What does not exist yet, or has "%u" in it, follows the real path of what does.
 */
static struct str resolve(struct arena *arena, const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    size_t len = strlen(path);
    const char *user = strstr(path, "%u");
    if (len >= sizeof(folder))
        return arena_dup(arena, str_of(path));
    if (!user && realpath(path, real))
        return arena_dup(arena, str_of(real));
    for (size_t end = user ? (size_t)(user - path) : len; end; end--) {
        if (path[end - 1] != '/')
            continue;
        snprintf(folder, sizeof(folder), "%.*s", (int)end, path);
        if (realpath(folder, real))
            return arena_printf(arena, "%s/%s", strcmp(real, "/") ? real : "", path + end);
    }
    return realpath(".", real) ? arena_printf(arena, "%s/%s", real, path) : arena_dup(arena, str_of(path));
}

void confine_hide(struct loop *loop, const char *const *paths, size_t count)
{
    struct hidden_paths *hidden = loop_singleton(loop, &singleton_key, make_hidden, free_hidden);
    arena_free(hidden->arena);
    hidden->arena = arena_new();
    hidden->list = ARENA_ARRAY(hidden->arena, struct str, count);
    hidden->count = 0;
    for (size_t i = 0; i < count; i++)
        if (paths[i] && *paths[i])
            hidden->list[hidden->count++] = resolve(hidden->arena, paths[i]);
}

struct confine_support confine_support(void)
{
    return (struct confine_support){landlock_abi(), seccomp_is_supported()};
}

const char *confine_script(const struct child_spec *child)
{
    const char *const *word = child->argv + (child->argv[0] != NULL);
    struct stat info;
    while (*word && **word == '-') /* options of the interpreter */
        word++;
    return *word && **word == '/' && stat(*word, &info) == 0 && S_ISREG(info.st_mode) ? *word : NULL;
}

enum err confine_prepare(struct loop *loop, struct arena *arena, const struct confine_spec *spec,
                         const struct child_spec *child, const char *script, struct confinement *out,
                         struct why *why)
{
    struct confine_support support = confine_support();
    struct hidden_paths *hidden = loop_singleton(loop, &singleton_key, make_hidden, free_hidden);
    const struct confine_paths hidden_list = {hidden->list, hidden->count};
    struct buf missing = buf_in(arena);
    if (!support.landlock_abi)
        buf_text(&missing,
                 "Landlock (Linux 5.13 or later, with landlock in the lsm= of its command line; a service "
                 "unit must allow landlock_create_ruleset, landlock_add_rule and "
                 "landlock_restrict_self in SystemCallFilter=)");
    if (!support.seccomp)
        buf_printf(&missing, "%sseccomp filters (a service unit must allow seccomp in SystemCallFilter=)",
                   missing.len ? " and " : "");
    *out = (struct confinement){.child = {.landlock = -1}, .missing = buf_view(&missing)};
    if (out->missing.len && !spec->best_effort)
        return err_set(why, ERR_UNAVAILABLE,
                       "sandbox: there is no " STR_FMT "; without it nothing would hold the process back: "
                       "provide it, or set sandbox.best_effort = true to start it unconfined",
                       STR_ARG(out->missing));
    enum err err = OK;
    if (support.landlock_abi) {
        struct str list[2]; /* the program, and the script that the caller vouches for */
        struct confine_paths programs = {list, 0};
        char found[PATH_MAX];
        struct why missing_program; /* which shows at its exec */
        if (child_find_program(child, found, &missing_program) == OK)
            list[programs.count++] = arena_dup(arena, str_of(found));
        if (script)
            list[programs.count++] = str_of(script);
        err = landlock_ruleset(arena, spec, &hidden_list, &programs, &out->child.landlock, why);
        out->narrowed = landlock_narrowed(arena, spec, &hidden_list);
    }
    if (!err && support.seccomp)
        out->child.filter = seccomp_filter(arena, spec->network, support.landlock_abi);
    if (!err && support.seccomp && !out->child.filter)
        err = err_set(why, ERR_UNAVAILABLE, "sandbox: the filter of system calls could not be made");
    return err;
}

struct child_limits confine_limits(const struct confine_spec *spec)
{
    return (struct child_limits){.memory_bytes =
                                     spec->memory_bytes ? spec->memory_bytes : CONFINE_MEMORY_BYTES,
                                 .processes = spec->processes};
}

void confine_free(struct confinement *confinement)
{
    if (confinement->child.landlock >= 0)
        close(confinement->child.landlock);
    confinement->child.landlock = -1;
}

/* ---- comparing and copying ---- */

static bool paths_equal(const struct confine_paths *a, const struct confine_paths *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = str_eq(a->list[i], b->list[i]);
    return equal;
}

bool confine_spec_equal(const struct confine_spec *a, const struct confine_spec *b)
{
    return a->on == b->on && a->best_effort == b->best_effort && a->network == b->network &&
           a->reads_given == b->reads_given && paths_equal(&a->read, &b->read) &&
           paths_equal(&a->write, &b->write) && paths_equal(&a->env, &b->env) &&
           a->memory_bytes == b->memory_bytes && a->processes == b->processes;
}

static struct confine_paths copy_paths(struct arena *arena, const struct confine_paths *from)
{
    struct str *list = ARENA_ARRAY(arena, struct str, from->count);
    for (size_t i = 0; i < from->count; i++)
        list[i] = arena_dup(arena, from->list[i]);
    return (struct confine_paths){list, from->count};
}

struct confine_spec confine_spec_copy(struct arena *arena, const struct confine_spec *spec)
{
    struct confine_spec copy = *spec;
    copy.read = copy_paths(arena, &spec->read);
    copy.write = copy_paths(arena, &spec->write);
    copy.env = copy_paths(arena, &spec->env);
    return copy;
}
