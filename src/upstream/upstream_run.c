/* What the kinds of upstreams may ask of a call under way, and say of it. Beginning and ending it is
 * upstream.c's. */
#include "upstream/upstream_run.h"

#include "base/arena.h"

#include <stdarg.h>

void run_answer(struct upstream_run *run, enum upstream_ended ended, const char *code, const char *format,
                ...)
{
    va_list args;
    va_start(args, format);
    run->answer->ended = ended;
    run->answer->code = arena_dup(run->arena, str_of(code));
    run->answer->detail = arena_vprintf(run->arena, format, args);
    va_end(args);
}
