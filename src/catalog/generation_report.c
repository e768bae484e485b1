/* The lists of errors and warnings of a load. */
#include "catalog/generation_report.h"

#include "base/arena.h"

#include <stdarg.h>
#include <string.h>

void generation_report_init(struct generation_report *report, struct arena *arena)
{
    *report = (struct generation_report){.arena = arena};
}

/* The list doubles when its count reaches a power of two. */
static void append(struct arena *arena, struct str **list, size_t *count, const char *format, va_list args)
{
    if ((*count & (*count - 1)) == 0) {
        struct str *longer = ARENA_ARRAY(arena, struct str, *count ? *count * 2 : 1);
        if (*count)
            memcpy(longer, *list, *count * sizeof(*longer));
        *list = longer;
    }
    (*list)[(*count)++] = arena_vprintf(arena, format, args);
}

void generation_report_error(struct generation_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->arena, &report->errors, &report->error_count, format, args);
    va_end(args);
}

void generation_report_warning(struct generation_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->arena, &report->warnings, &report->warning_count, format, args);
    va_end(args);
}
