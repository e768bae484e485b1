/* Lines are taken from the beginning, then those with the goal's words, until the budget is spent. */
#include "gate/compact_text.h"

#include "base/arena.h"
#include "base/buf.h"

#define MARK_BYTES  48u /* "[… 123456 lines left out …]" */
#define LINES_LEAST 4u  /* fewer are cut as one text */

struct line {
    struct str text; /* without its line break */
    bool taken, wanted;
};

static size_t split(struct str text, struct line *lines)
{
    size_t count = 0, from = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.at[i] != '\n')
            continue;
        if (lines)
            lines[count] = (struct line){.text = {text.at + from, i - from}};
        count++;
        from = i + 1;
    }
    return count;
}

/* In the middle of a line only where there is no other way, then at a space where one is near. */
static struct str cut_plainly(struct arena *arena, struct str text, size_t budget, size_t *left_out)
{
    struct str head = str_cut(text, budget > MARK_BYTES ? budget - MARK_BYTES : 0);
    size_t end = head.len;
    while (end > head.len - head.len / 8 && !(head.at[end - 1] == ' ' || head.at[end - 1] == '\n'))
        end--;
    if (end > head.len - head.len / 8)
        head.len = end;
    *left_out = text.len - head.len;
    return arena_printf(arena, STR_FMT "[… %zu of %zu bytes left out]", STR_ARG(head), *left_out, text.len);
}

/* Takes lines in their order, all or only the wanted ones, while they fit. */
static size_t take(struct line *lines, size_t count, bool wanted, size_t budget)
{
    for (size_t i = 0; i < count; i++) {
        size_t cost = lines[i].text.len + 1;
        if (lines[i].taken || (wanted && !lines[i].wanted))
            continue;
        if (cost > budget && !wanted)
            break;
        if (cost <= budget) {
            lines[i].taken = true;
            budget -= cost;
        }
    }
    return budget;
}

static struct str join(struct arena *arena, const struct line *lines, size_t count)
{
    struct buf out = buf_in(arena);
    size_t gap = 0;
    for (size_t i = 0; i <= count; i++) {
        if (i < count && !lines[i].taken) {
            gap++;
            continue;
        }
        if (gap)
            buf_printf(&out, "[… %zu line%s left out …]%s", gap, gap == 1 ? "" : "s", i < count ? "\n" : "");
        gap = 0;
        if (i == count)
            break;
        buf_str(&out, lines[i].text);
        if (i + 1 < count)
            buf_byte(&out, '\n');
    }
    return buf_view(&out);
}

struct str compact_text(struct arena *arena, const struct compact_rules *rules, struct str text,
                        size_t budget, size_t *left_out)
{
    size_t count = split(text, NULL), wanted = 0;
    *left_out = 0;
    if (text.len <= budget)
        return text;
    if (count < LINES_LEAST)
        return cut_plainly(arena, text, budget, left_out);
    struct line *lines = ARENA_ARRAY(arena, struct line, count);
    split(text, lines);
    for (size_t i = 0; i < count; i++)
        wanted += lines[i].wanted = compact_words_in(rules, lines[i].text) != 0;
    size_t marks = MARK_BYTES * (1 + (wanted < 8 ? wanted : 8));
    size_t room = budget > marks ? budget - marks : 0;
    size_t rest = take(lines, count, false, wanted ? room / 2 : room);
    rest = take(lines, count, true, rest + (wanted ? room - room / 2 : 0));
    take(lines, count, false, rest);
    struct str joined = join(arena, lines, count);
    if (!lines[0].taken || joined.len > budget)
        return cut_plainly(arena, text, budget, left_out);
    for (size_t i = 0; i < count; i++)
        *left_out += lines[i].taken ? 0 : lines[i].text.len + 1;
    return joined;
}
