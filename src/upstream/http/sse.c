/* Line by line. A CR ends a line at once, since the LF that may follow it can be long in coming. */
#include "upstream/http/sse.h"

#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

void sse_init(struct sse *sse, size_t max)
{
    *sse = (struct sse){.max = max};
}

void sse_clear(struct sse *sse)
{
    buf_clear(&sse->line);
    buf_clear(&sse->data);
    buf_clear(&sse->type);
    buf_clear(&sse->id);
    buf_clear(&sse->last_id);
}

static void set(struct buf *buf, struct str value)
{
    buf->len = 0;
    buf_str(buf, value);
}

static void next_event(struct sse *sse)
{
    sse->data.len = sse->type.len = 0;
    sse->has_data = sse->ended = false;
}

void sse_restart(struct sse *sse)
{
    next_event(sse);
    sse->line.len = 0;
    set(&sse->id, buf_view(&sse->last_id));
    sse->after_cr = sse->has_begun = sse->too_long = false;
}

struct str sse_last_id(const struct sse *sse)
{
    return buf_view(&sse->last_id);
}

/* A line that is not empty. A comment is a field without a name. */
static void take_field(struct sse *sse, struct str line)
{
    struct str value = line, name = str_split(&value, ':');
    bool printable = true, digits = value.len > 0;
    uint32_t ms = 0;
    if (str_starts(value, " "))
        value = str_from(value, 1);
    if (str_is(name, "data")) {
        sse->too_long = sse->data.len + value.len + 1 > sse->max;
        if (sse->too_long)
            return;
        if (sse->has_data)
            buf_byte(&sse->data, '\n');
        buf_str(&sse->data, value);
        sse->has_data = true;
    } else if (str_is(name, "event")) {
        set(&sse->type, value.len <= SSE_TYPE_MAX_BYTES ? value : STR_NONE);
    } else if (str_is(name, "id")) {
        /* The standard ignores an id with a NUL; other control characters could not go into a header. */
        for (size_t i = 0; i < value.len; i++)
            printable &= (unsigned char)value.at[i] >= ' ' && value.at[i] != 0x7F;
        if (printable)
            set(&sse->id, value.len <= SSE_ID_MAX_BYTES ? value : STR_NONE);
    } else if (str_is(name, "retry")) {
        for (size_t i = 0; i < value.len; i++) {
            digits &= ascii_is_digit(value.at[i]);
            ms = ms > SSE_RETRY_MAX_MS ? ms : ms * 10 + (uint32_t)(value.at[i] - '0');
        }
        if (digits && value.len)
            sse->retry_ms = ms > SSE_RETRY_MAX_MS ? SSE_RETRY_MAX_MS : ms;
    }
}

enum sse_result sse_next(struct sse *sse, struct str *bytes, struct sse_event *event)
{
    if (sse->ended)
        next_event(sse);
    while (!sse->too_long) {
        /* Moves bytes into `line`, up to its end. */
        if (bytes->len && sse->after_cr) {
            sse->after_cr = false;
            *bytes = str_from(*bytes, bytes->at[0] == '\n');
        }
        size_t n = 0;
        while (n < bytes->len && bytes->at[n] != '\n' && bytes->at[n] != '\r')
            n++;
        if (sse->line.len + n > sse->max + sizeof("data: "))
            break;
        buf_add(&sse->line, bytes->at, n);
        bool whole = n < bytes->len;
        if (whole)
            sse->after_cr = bytes->at[n] == '\r';
        *bytes = str_from(*bytes, n + whole);
        if (!whole)
            return SSE_MORE;
        struct str line = buf_view(&sse->line);
        if (!sse->has_begun && str_starts(line, BYTE_ORDER_MARK))
            line = str_from(line, sizeof(BYTE_ORDER_MARK) - 1);
        sse->has_begun = true;
        sse->line.len = 0;
        if (line.len) {
            take_field(sse, line);
            continue;
        }
        set(&sse->last_id, buf_view(&sse->id)); /* an empty line completes an event */
        if (!sse->has_data) {
            next_event(sse);
            continue;
        }
        sse->ended = true;
        event->type = sse->type.len ? buf_view(&sse->type) : STR_LIT("message");
        event->data = buf_view(&sse->data);
        return SSE_EVENT;
    }
    sse->too_long = true;
    return SSE_TOO_LONG;
}
