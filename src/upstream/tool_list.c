/*
 * A tool list is an arena with one array in it. A cache file is replaced as a
 * whole, so that no daemon reads half of one.
 */
#include "upstream/tool_list.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/file.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#include <sys/stat.h>

struct tool_list {
    struct arena *arena;
    unsigned refs;
    struct json tools;
    uint64_t hash;
};

struct tool_list *tool_list_new(const struct json *tools)
{
    struct arena *arena = arena_new();
    struct tool_list *list = ARENA_NEW(arena, struct tool_list);
    struct buf text = {0};
    *list = (struct tool_list){.arena = arena, .refs = 1, .tools = json_copy(arena, tools)};
    list->hash = tools->type;
    /* Their order does not count: some servers list them in another one each time. */
    for (uint32_t i = 0; i < json_child_count(tools); i++) {
        text.len = 0;
        json_canonical(&text, json_child(tools, i));
        list->hash += hash_stable(buf_view(&text)).low;
    }
    buf_clear(&text);
    return list;
}

struct tool_list *tool_list_ref(struct tool_list *list)
{
    list->refs++;
    return list;
}

void tool_list_unref(struct tool_list *list)
{
    if (list && --list->refs == 0)
        arena_free(list->arena);
}

const struct json *tool_list_array(const struct tool_list *list)
{
    return &list->tools;
}

uint64_t tool_list_hash(const struct tool_list *list)
{
    return list->hash;
}

/* Identifies the server that answers: the templates of its configuration, not the secrets in them. */
static struct str identity(struct arena *arena, const struct upstream_spec *spec)
{
    struct buf text = buf_in(arena), hex = buf_in(arena);
    const struct str fields[] = {spec->name, spec->cwd, spec->url};
    buf_int(&text, spec->kind);
    for (size_t i = 0; i < 3 + spec->argc; i++) {
        json_write_string(&text, i < 3 ? fields[i] : spec->argv[i - 3]);
        buf_byte(&text, ',');
    }
    buf_hex64(&hex, hash_stable(buf_view(&text)).low);
    return buf_view(&hex);
}

/* The configuration allows only letters, digits, - and _ in names. */
static const char *path_of(struct arena *arena, const char *state, const struct upstream_spec *spec)
{
    return arena_printf(arena, "%s/" STR_FMT ".tools.json", state, STR_ARG(spec->name)).at;
}

static bool is_trusted(const char *path)
{
    struct why why;
    if (file_check_private(path, &why) == OK)
        return true;
    log_event(LOG_WARN, "upstream_tools_ignored", LOG_TEXT("why", why.text));
    return false;
}

static const char *const members[UPSTREAM_LISTS] = {"tools", "prompts", "resources", "resourceTemplates",
                                                    "instructions"};

struct tool_list *tool_cache_read(const char *state, const struct upstream_spec *spec,
                                  enum upstream_list which, enum tool_cache_owner owner)
{
    struct tool_list *list = NULL;
    struct json file;
    if (!state)
        return NULL;
    struct arena *arena = arena_new();
    const char *path = path_of(arena, state, spec);
    if (owner == TOOL_CACHE_OWN && (!is_trusted(state) || !is_trusted(path))) {
        arena_free(arena);
        return NULL;
    }
    if (json_read_file(arena, path, UPSTREAM_LINE_MAX_BYTES, &file, NULL) == OK) {
        const struct json *items = json_get_text(&file, members[which]);
        bool same = str_eq(json_str(json_get_text(&file, "upstream")), identity(arena, spec));
        if (same && json_is(items, JSON_ARRAY))
            list = tool_list_new(items);
    }
    arena_free(arena);
    return list;
}

void tool_cache_write(const char *state, const struct upstream_spec *spec,
                      struct tool_list *const lists[UPSTREAM_LISTS])
{
    if (!state)
        return;
    struct arena *arena = arena_new();
    struct buf text = buf_in(arena);
    const char *path = path_of(arena, state, spec);
    struct why why;
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_key(&out, "upstream");
    json_put_str(&out, identity(arena, spec));
    for (size_t i = 0; i < UPSTREAM_LISTS; i++)
        if (lists[i]) {
            json_key(&out, members[i]);
            json_put(&out, tool_list_array(lists[i]));
        }
    json_close(&out, '}');
    mkdir(state, 0700);
    if (file_check_private(state, &why) != OK || file_replace(path, buf_view(&text), false, &why) != OK)
        log_event(LOG_WARN, "upstream_tools_not_cached", LOG_STR("upstream", spec->name),
                  LOG_TEXT("file", path), LOG_TEXT("why", why.text),
                  LOG_TEXT("effect", spec->lazy ? "the next start asks the upstream for its tools"
                                                : "toolgate replay will not know its tools"));
    arena_free(arena);
}
