/* Looks at modes and owners as they are on disk; group permissions are the operator's business. */
#include "catalog/policy_access.h"

#include "base/arena.h"
#include "policy/policy_set.h"

#include <sys/stat.h>
#include <unistd.h>

/* The first path of a kind, and how many there are. */
struct access_finding {
    struct str path;
    unsigned mode, owner;
    size_t count;
};

struct access_findings {
    struct arena *arena;
    struct access_finding writable, foreign;
};

static void note(struct access_findings *all, struct access_finding *kind, struct str path,
                 const struct stat *st)
{
    if (!kind->count++)
        *kind = (struct access_finding){arena_dup(all->arena, path), (unsigned)st->st_mode & 07777u,
                                        (unsigned)st->st_uid, 1};
}

static void check(struct access_findings *all, struct str path)
{
    struct stat st;
    if (stat(arena_dup(all->arena, path).at, &st) != 0)
        return;
    if (st.st_mode & S_IWOTH) /* also of a sticky folder: others may add a policy */
        note(all, &all->writable, path, &st);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        note(all, &all->foreign, path, &st);
}

static struct str and_more(struct arena *arena, const struct access_finding *finding)
{
    return finding->count > 1 ? arena_printf(arena, " (and %zu more)", finding->count - 1) : STR_NONE;
}

static void report_findings(const struct access_findings *all, const char *folder,
                            struct generation_report *report)
{
    const struct access_finding *open = &all->writable, *foreign = &all->foreign;
    if (open->count)
        generation_report_warning(
            report,
            STR_FMT STR_FMT ": mode %04o lets every user change what agents may do: chmod -R "
                            "o-w %s",
            STR_ARG(open->path), STR_ARG(and_more(all->arena, open)), open->mode, folder);
    if (foreign->count)
        generation_report_warning(
            report,
            STR_FMT STR_FMT ": belongs to uid %u, who can change what agents may do and is "
                            "neither root nor the user of this process: chown -R root %s",
            STR_ARG(foreign->path), STR_ARG(and_more(all->arena, foreign)), foreign->owner, folder);
}

void policy_access_check(const struct generation *g, struct generation_report *report)
{
    const char *folder = g->config.policies;
    struct access_findings all = {.arena = arena_new()};
    size_t count = policy_set_count(g->policies);
    if (folder)
        check(&all, str_of(folder));
    for (size_t i = 0; folder && i < count; i++)
        check(&all, policy_set_at(g->policies, i)->file);
    if (policy_set_has_gateway(g->policies))
        check(&all, policy_set_gateway_file(g->policies));
    report_findings(&all, folder, report);
    arena_free(all.arena);
}
