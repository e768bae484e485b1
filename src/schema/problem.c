/* The list of problems, and its renderings: a line for the model, all lines, and JSON for programs. */
#include "schema/problem.h"

#include "base/arena.h"
#include "json/write.h"

#define FIRST_CAPACITY 4u

void problems_init(struct problems *problems, struct arena *arena)
{
    *problems = (struct problems){.arena = arena};
}

void problems_add(struct problems *problems, struct problem problem)
{
    size_t bytes = problem.path.len + problem.message.len;
    bool fits = problems->count < PROBLEMS_MAX && problems->text_bytes + bytes <= PROBLEMS_MAX_TEXT_BYTES;
    if (!fits && problems->count > 0) {
        problems->more++;
        return;
    }
    if (problems->count == problems->capacity) {
        problems->capacity = problems->capacity ? problems->capacity * 2 : FIRST_CAPACITY;
        struct problem *list = ARENA_ARRAY(problems->arena, struct problem, problems->capacity);
        if (problems->count)
            memcpy(list, problems->list, problems->count * sizeof(*list));
        problems->list = list;
    }
    problems->list[problems->count++] = problem;
    problems->text_bytes += bytes;
    problems->errors += !problem.warning;
}

bool problems_full(const struct problems *problems)
{
    return problems->count == PROBLEMS_MAX || problems->text_bytes >= PROBLEMS_MAX_TEXT_BYTES;
}

void problem_line(struct buf *out, const struct problem *problem)
{
    buf_text(out, "- ");
    struct str path = str_cut(problem->path, PROBLEM_PATH_MAX_BYTES);
    if (path.len) {
        buf_byte(out, '\'');
        buf_str(out, path);
        buf_text(out, path.len < problem->path.len ? "…'" : "'");
    } else if (!str_starts(problem->message, "arguments ")) { /* else the sentence names its subject */
        buf_text(out, problem->in_result ? "result" : "arguments");
    }
    buf_text(out, path.len || !str_starts(problem->message, "arguments ") ? ": " : "");
    buf_str(out, problem->message);
    buf_byte(out, '\n');
}

void problems_text(struct buf *out, const struct problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        if (!problems->list[i].quiet)
            problem_line(out, &problems->list[i]);
    if (problems->more)
        buf_printf(out, "- and %zu more\n", problems->more);
}

void problem_path(struct buf *out, const struct problem *problem)
{
    buf_text(out, problem->in_result ? "result" : "args");
    if (problem->path.len && problem->path.at[0] != '[')
        buf_byte(out, '.');
    buf_str(out, problem->path);
}

static void put_raw(struct json_out *out, const char *key, struct str json)
{
    if (json.len)
        json_field_raw(out, key, json);
}

void problem_json(struct json_out *out, const struct problem *problem)
{
    char local[256]; /* the common path needs no allocation */
    struct buf path = {0};
    if (problem->path.len + sizeof("result.") <= sizeof(local))
        path = (struct buf){.at = local, .cap = sizeof(local)};
    problem_path(&path, problem);
    json_open(out, '{');
    json_field_str(out, "path", buf_view(&path));
    json_field_text(out, "code", problem->code);
    json_field_str(out, "message", problem->message);
    json_field_text(out, "severity", problem->warning ? "warning" : "error");
    put_raw(out, "expected", problem->expected);
    put_raw(out, "got", problem->got);
    json_field_optional_str(out, "description", problem->description);
    json_close(out, '}');
    if (path.at != local)
        buf_clear(&path);
}
