/* Collects the paths; confine/landlock.c keeps them. A path that a policy computes is not found. */
#include "server/hidden_paths.h"

#include "base/arena.h"
#include "upstream/confine/confine.h"
#include "policy/config.h"
#include "io/file.h"
#include "server/state_dir.h"
#include "upstream/upstream_spec.h"

#include <dirent.h>
#include <string.h>

#define POLICY_TEXT_BYTES 1048576u /* the rest of a longer policy is not searched */

struct hidden {
    struct arena *arena;
    const char **list;
    size_t count, capacity;
};

static void hide(struct hidden *h, const char *path)
{
    if (h->count == h->capacity) {
        size_t capacity = h->capacity ? 2 * h->capacity : 64;
        const char **list = ARENA_ARRAY(h->arena, const char *, capacity);
        if (h->count)
            memcpy(list, h->list, h->count * sizeof(*list));
        h->list = list;
        h->capacity = capacity;
    }
    h->list[h->count++] = path;
}

static void hide_files_in(struct hidden *h, struct str text)
{
    struct str before, path;
    while (upstream_spec_next_file(&text, &before, &path))
        hide(h, arena_dup(h->arena, path).at);
}

static void hide_pairs(struct hidden *h, const struct name_values *pairs)
{
    for (size_t i = 0; i < pairs->count; i++)
        hide_files_in(h, pairs->list[i].value);
}

static void hide_upstream(struct hidden *h, const struct upstream_spec *spec)
{
    for (size_t i = 0; i < spec->argc; i++)
        hide_files_in(h, spec->argv[i]);
    hide_pairs(h, &spec->env);
    hide_pairs(h, &spec->headers);
    hide_files_in(h, spec->url);
    hide_files_in(h, spec->cwd);
}

static void hide_policies(struct hidden *h, const char *folder)
{
    DIR *dir = opendir(folder);
    hide(h, folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct str text;
        size_t len = strlen(entry->d_name);
        const char *path = arena_printf(h->arena, "%s/%s", folder, entry->d_name).at;
        if (entry->d_type == DT_LNK)
            hide(h, path);
        if (len > 4 && strcmp(entry->d_name + len - 4, ".lua") == 0 &&
            file_read(h->arena, path, POLICY_TEXT_BYTES, &text, NULL) == OK)
            hide_files_in(h, text);
    }
    if (dir)
        closedir(dir);
}

static void hide_list(struct hidden *h, const struct path_list *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        hide(h, paths->list[i]);
}

void hidden_paths_apply(struct loop *loop, const struct config *config, const char *const *more, size_t count)
{
    static const char *const passwords[] = {"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"};
    struct hidden h = {.arena = arena_new()};
    const char *const own[] = {config->socket,
                               config->file,
                               config->schemas,
                               config->ledger_password_file,
                               config->metrics.token_file,
                               config->log_file,
                               state_dir_folder(h.arena, config),
                               state_dir_decisions(h.arena, config)};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        hide(&h, own[i]);
    for (size_t i = 0; i < sizeof(passwords) / sizeof(*passwords); i++)
        hide(&h, passwords[i]);
    for (size_t i = 0; i < count; i++)
        hide(&h, more[i]);
    hide_policies(&h, config->policies ? config->policies : "policies");
    hide_list(&h, &config->tools);
    hide_list(&h, &config->mcp_configs);
    if (config->ledger_redis)
        hide_files_in(&h, str_of(config->ledger_redis));
    hide_files_in(&h, config->traces.endpoint);
    hide_pairs(&h, &config->traces.headers);
    for (size_t i = 0; i < config->upstream_count; i++)
        hide_upstream(&h, config->upstreams[i]);
    confine_hide(loop, h.list, h.count);
    arena_free(h.arena);
}
