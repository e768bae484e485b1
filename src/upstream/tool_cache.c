/* See tool_cache.h. A file is written aside and moved into its place, so that no daemon reads half of one. */
#include "upstream/tool_cache.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/tool_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_list(struct buf *text, const struct str *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_write_string(text, list[i]);
        buf_byte(text, ',');
    }
}

/* Of what decides who answers: the templates, not the secrets that they stand for. */
static uint64_t mark_of(struct arena *arena, const struct upstream_spec *spec)
{
    struct buf text = buf_in(arena);
    const struct str one[] = {spec->name, spec->cwd, spec->url};
    buf_int(&text, spec->kind);
    put_list(&text, one, sizeof(one) / sizeof(one[0]));
    put_list(&text, spec->argv, spec->argc);
    return hash_stable(buf_view(&text)).low;
}

/* Names are letters, digits, - and _ (configuration). */
static const char *path_of(struct arena *arena, const char *state, const struct upstream_spec *spec,
                           const char *ending)
{
    return arena_printf(arena, "%s/" STR_FMT "%s", state, STR_ARG(spec->name), ending).at;
}

struct tool_list *tool_cache_read(const char *state, const struct upstream_spec *spec)
{
    struct tool_list *offer = NULL;
    struct json kept;
    if (!state)
        return NULL;
    struct arena *arena = arena_new();
    const char *path = path_of(arena, state, spec, ".tools.json");
    if (json_read_file(arena, path, UPSTREAM_LINE_MAX_BYTES, &kept, NULL) == OK) {
        const struct json *tools = json_get_text(&kept, "tools");
        struct buf mark = buf_in(arena);
        buf_hex64(&mark, mark_of(arena, spec));
        if (str_eq(json_str(json_get_text(&kept, "upstream")), buf_view(&mark)) && json_is(tools, JSON_ARRAY))
            offer = tool_list_new(tools);
    }
    arena_free(arena);
    return offer;
}

static bool put_all(const char *path, struct str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t put = fd < 0 ? -1 : write(fd, text.at, text.len);
    return fd >= 0 && close(fd) == 0 && put == (ssize_t)text.len;
}

void tool_cache_write(const char *state, const struct upstream_spec *spec, const struct tool_list *offer)
{
    if (!state)
        return;
    struct arena *arena = arena_new();
    struct buf text = buf_in(arena), mark = buf_in(arena);
    const char *path = path_of(arena, state, spec, ".tools.json");
    const char *aside = path_of(arena, state, spec, ".tools.new");
    buf_hex64(&mark, mark_of(arena, spec));
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_key(&out, "upstream");
    json_put_str(&out, buf_view(&mark));
    json_key(&out, "tools");
    json_put(&out, tool_list_array(offer));
    json_close(&out, '}');
    mkdir(state, 0700);
    if (!put_all(aside, buf_view(&text)) || rename(aside, path) != 0)
        log_event(LOG_WARN, "upstream_tools_not_cached", LOG_STR("upstream", spec->name),
                  LOG_TEXT("file", path), LOG_TEXT("why", strerror(errno)),
                  LOG_TEXT("effect", "they are asked for again at the next start"));
    arena_free(arena);
}
