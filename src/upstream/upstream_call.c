/* What the kinds of upstreams may ask of a call under way, and say of it. Beginning and ending it is
 * upstream.c's. */
#include "upstream/upstream_call.h"

#include "base/arena.h"

#include <stdarg.h>

void upstream_call_answer(struct upstream_call *run, enum upstream_outcome ended, const char *code,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    run->answer->outcome = ended;
    run->answer->code = arena_dup(run->arena, str_of(code));
    run->answer->detail = arena_vprintf(run->arena, format, args);
    va_end(args);
}
