/* A policy has a tool's name, an upstream letters, digits, '_' and '-'; a line with anything else is skipped.
 */
#include "server/guarded_file.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "catalog/tool.h"
#include "io/file.h"
#include "server/state_dir.h"

#include <unistd.h>

static const char *path_of(struct arena *arena, const struct config *config)
{
    return state_dir_is_given(config) ? state_dir_path(arena, config, "guarded") : NULL;
}

static struct str read_text(struct arena *arena, const char *path)
{
    struct str text = STR_NONE;
    struct why why;
    if (access(path, F_OK) == 0 && file_read(arena, path, GUARDED_FILE_MAX_BYTES, &text, &why) != OK)
        log_event(LOG_ERROR, "guarded_unreadable", LOG_TEXT("why", why.text));
    return text;
}

struct guarded_tool *guarded_file_read(struct arena *arena, const struct config *config, size_t *count)
{
    const char *path = path_of(arena, config);
    struct str text = path ? read_text(arena, path) : STR_NONE;
    size_t lines = 0;
    *count = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    struct guarded_tool *list = ARENA_ARRAY(arena, struct guarded_tool, lines + 1);
    for (const char *end; text.len && (end = memchr(text.at, '\n', text.len));) {
        struct str line = {text.at, (size_t)(end - text.at)};
        const char *space = line.len ? memchr(line.at, ' ', line.len) : NULL;
        struct str policy = {line.at, space ? (size_t)(space - line.at) : 0};
        struct str upstream = str_from(line, policy.len + 1);
        text = str_from(text, line.len + 1);
        if (tool_name_fits(policy) && str_is_name(upstream))
            list[(*count)++] = (struct guarded_tool){.policy = policy, .upstream = upstream};
    }
    return list;
}

void guarded_file_write(const struct config *config, const struct guarded_tool *list, size_t count)
{
    struct arena *arena = arena_new();
    const char *path = path_of(arena, config);
    struct buf text = buf_in(arena);
    struct why why;
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, STR_FMT " " STR_FMT "\n", STR_ARG(list[i].policy), STR_ARG(list[i].upstream));
    if (path && !str_eq(read_text(arena, path), buf_view(&text)) &&
        file_replace(path, buf_view(&text), false, &why) != OK)
        log_event(LOG_ERROR, "guarded_not_kept", LOG_TEXT("why", why.text));
    arena_free(arena);
}
