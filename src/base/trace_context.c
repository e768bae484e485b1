/* The grammar of traceparent is checked in full, of the other two only that they fit a header. */
#include "base/trace_context.h"

#define AT_TRACE_ID 3u
#define AT_SPAN_ID  36u
#define AT_FLAGS    53u

const struct str trace_key_names[TRACE_KEYS] = {
    [TRACE_PARENT] = STR("traceparent"), [TRACE_STATE] = STR("tracestate"), [TRACE_BAGGAGE] = STR("baggage")};

static bool all_zero(struct str s, size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++)
        if (s.at[i] != '0')
            return false;
    return true;
}

/* 00-<trace id>-<span id>-<flags>; a later version may append "-…". */
static const char *parent_fault(struct str s)
{
    static const char form[] =
        "is not of the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits> in lower "
        "case (W3C Trace Context)";
    bool shaped = s.len >= TRACE_PARENT_BYTES;
    for (size_t i = 0; i < TRACE_PARENT_BYTES && shaped; i++)
        shaped = i == AT_TRACE_ID - 1 || i == AT_SPAN_ID - 1 || i == AT_FLAGS - 1
                     ? s.at[i] == '-'
                     : ascii_is_digit(s.at[i]) || (s.at[i] >= 'a' && s.at[i] <= 'f');
    bool is_first_version = shaped && s.at[0] == '0' && s.at[1] == '0';
    if (!shaped || (s.len > TRACE_PARENT_BYTES && (is_first_version || s.at[TRACE_PARENT_BYTES] != '-')))
        return form;
    if (s.at[0] == 'f' && s.at[1] == 'f')
        return "has the invalid version ff";
    if (all_zero(s, AT_TRACE_ID, TRACE_ID_DIGITS))
        return "has a trace id of zeros only";
    if (all_zero(s, AT_SPAN_ID, TRACE_SPAN_ID_DIGITS))
        return "has a span id of zeros only";
    return NULL;
}

const char *trace_context_fault(enum trace_key key, struct str value)
{
    static const struct {
        size_t max_bytes;
        const char *too_long;
    } limits[] = {[TRACE_PARENT] = {TRACE_PARENT_MAX_BYTES, "is longer than 256 bytes"},
                  [TRACE_STATE] = {TRACE_STATE_MAX_BYTES, "is longer than 8192 bytes"},
                  [TRACE_BAGGAGE] = {TRACE_BAGGAGE_MAX_BYTES, "is longer than 8192 bytes"}};
    if (!value.len)
        return "is empty";
    if (value.len > limits[key].max_bytes)
        return limits[key].too_long;
    for (size_t i = 0; i < value.len; i++)
        if ((value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] > '~')
            return "holds a character that no HTTP header can carry";
    return key == TRACE_PARENT ? parent_fault(value) : NULL;
}

struct str trace_parent_trace_id(struct str traceparent)
{
    return (struct str){traceparent.at + AT_TRACE_ID, TRACE_ID_DIGITS};
}

struct str trace_parent_span_id(struct str traceparent)
{
    return (struct str){traceparent.at + AT_SPAN_ID, TRACE_SPAN_ID_DIGITS};
}

uint8_t trace_parent_flags(struct str traceparent)
{
    return (uint8_t)((unsigned)ascii_hex_value(traceparent.at[AT_FLAGS]) * 16 +
                     (unsigned)ascii_hex_value(traceparent.at[AT_FLAGS + 1]));
}
