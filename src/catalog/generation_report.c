/* What was wrong and odd about what was loaded, line by line. */
#include "catalog/generation.h"

#include "base/arena.h"

#include <stdarg.h>

void generation_report_init(struct generation_report *report, struct arena *arena)
{
    *report = (struct generation_report){.arena = arena};
}

/* The list doubles: ten thousand policies may each have something to say. */
static void append(struct arena *arena, struct str **list, size_t *count, struct str line)
{
    bool is_full = (*count & (*count - 1)) == 0;
    if (is_full) {
        struct str *longer = ARENA_ARRAY(arena, struct str, *count ? *count * 2 : 1);
        if (*count)
            memcpy(longer, *list, *count * sizeof(*longer));
        *list = longer;
    }
    (*list)[(*count)++] = line;
}

void generation_report_error(struct generation_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->arena, &report->errors, &report->error_count, arena_vprintf(report->arena, format, args));
    va_end(args);
}

void generation_report_warning(struct generation_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->arena, &report->warnings, &report->warning_count,
           arena_vprintf(report->arena, format, args));
    va_end(args);
}
