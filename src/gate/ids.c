/* Finds ids by the paths that a policy declares. */
#include "gate/ids.h"

#include "base/arena.h"
#include "json/path.h"
#include "json/write.h"
#include "policy/id_format.h"

struct str ids_quoted(struct arena *arena, const struct json *id)
{
    return arena_truncate(arena, json_to_str(arena, id), PROBLEM_GOT_MAX_BYTES);
}

/* All values at the path, in the arena: a guard that read only the first of them would let the others pass.
 */
static const struct json **values_at(struct arena *arena, const struct json *args, struct str path,
                                     size_t *count)
{
    *count = json_path_scalars(args, path, NULL, SIZE_MAX);
    const struct json **values = ARENA_ARRAY(arena, const struct json *, *count);
    json_path_scalars(args, path, values, *count);
    return values;
}

bool ids_find_malformed(struct arena *arena, const struct policy *policy, const struct json *args,
                        struct id_fault *fault)
{
    for (size_t i = 0; i < policy->id_count; i++) {
        const struct policy_id *id = &policy->ids[i];
        if (!id->format.len)
            continue;
        size_t count;
        const struct json **values = values_at(arena, args, id->path, &count);
        for (size_t k = 0; k < count; k++) {
            const char *wanted = id_format_mismatch(id->format, values[k]);
            if (!wanted)
                continue;
            *fault = (struct id_fault){id->path, ids_quoted(arena, values[k]), wanted};
            return true;
        }
    }
    return false;
}

static bool has_candidate(const struct id_candidates *ids, struct hash128 hash)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->hashes[i].low == hash.low && ids->hashes[i].high == hash.high)
            return true;
    return false;
}

void ids_collect(struct arena *arena, const struct policy *policy, const struct json *args,
                 struct id_candidates *out)
{
    for (size_t i = 0; i < policy->id_count && !out->too_many; i++) {
        size_t n;
        if (!policy->ids[i].seen)
            continue;
        const struct json **values = values_at(arena, args, policy->ids[i].path, &n);
        for (size_t k = 0; k < n && !out->too_many; k++) {
            struct hash128 hash = ids_hash(values[k]);
            if (has_candidate(out, hash))
                continue;
            if (out->count == LEDGER_IDS_MAX) {
                out->too_many = &policy->ids[i];
                break;
            }
            out->hashes[out->count] = hash;
            out->values[out->count] = values[k];
            out->from[out->count++] = &policy->ids[i];
        }
    }
}

/* A letter or digit; of the others, those of alphabets with spaces between words (Latin to Armenian, U+00C0
 * to U+058F), by the first byte of their UTF-8. */
static bool is_word_byte(unsigned char c)
{
    return ascii_is_alnum((char)c) || c == '_' || (c >= 0xc3 && c <= 0xd6);
}

/* The text goes on with the same word at an end of the id, whose last character there is `own`: "15" before
 * its 5, "INV-5", "2.5", "1,005", "$5", "5%". `sign` is next to it, `far` behind that; `unit`: '$' or '%'. */
static bool joins(char sign, char far, char own, char unit)
{
    bool is_second_byte = ((unsigned char)sign & 0xc0) == 0x80; /* of a letter */
    if (is_word_byte((unsigned char)sign))
        return true;
    if (sign == '-' || sign == '.' || sign == '@' || is_second_byte)
        return is_word_byte((unsigned char)far);
    if (sign == unit)
        return ascii_is_digit(own);
    return (sign == ',' || sign == ':') && ascii_is_digit(far) && ascii_is_digit(own);
}

/* Letters of ASCII in lower case; returns the text that stands in `room`. */
static struct str fold(struct str text, char room[IDS_GOAL_MAX_BYTES])
{
    for (size_t i = 0; i < text.len; i++)
        room[i] = (char)ascii_lower(text.at[i]);
    return (struct str){room, text.len};
}

static bool stands_alone(struct str goal, size_t at, struct str id)
{
    size_t end = at + id.len;
    char before = at ? goal.at[at - 1] : ' ', far_before = at > 1 ? goal.at[at - 2] : ' ';
    char after = end < goal.len ? goal.at[end] : ' ', far_after = end + 1 < goal.len ? goal.at[end + 1] : ' ';
    return !(is_word_byte((unsigned char)id.at[0]) && joins(before, far_before, goal.at[at], '$')) &&
           !(is_word_byte((unsigned char)id.at[id.len - 1]) &&
             joins(after, far_after, goal.at[end - 1], '%'));
}

/* By Knuth, Morris and Pratt: each character of the goal is read once, however often the id's beginning
 * repeats. */
bool ids_in_goal(struct str goal, struct str id)
{
    char goal_room[IDS_GOAL_MAX_BYTES], id_room[IDS_GOAL_MAX_BYTES];
    uint16_t borders[IDS_GOAL_MAX_BYTES] = {0};
    goal = str_cut(goal, IDS_GOAL_MAX_BYTES);
    if (!id.len || id.len > goal.len)
        return false;
    struct str words = fold(goal, goal_room), word = fold(id, id_room);
    size_t border = 0;
    borders[0] = 0;
    /* for each beginning of the id: how much of it ends as the id begins */
    for (size_t i = 1; i < word.len; i++) {
        while (border && word.at[i] != word.at[border])
            border = borders[border - 1];
        border += word.at[i] == word.at[border];
        borders[i] = (uint16_t)border;
    }
    size_t same = 0;
    for (size_t i = 0; i < words.len; i++) {
        while (same && (same == word.len || words.at[i] != word.at[same]))
            same = borders[same - 1];
        same += words.at[i] == word.at[same];
        if (same == word.len && stands_alone(goal, i + 1 - word.len, id))
            return true;
    }
    return false;
}

const struct policy_id *ids_find_unseen(struct arena *arena, const struct id_candidates *candidates,
                                        const struct ledger_answer *answer, uint64_t except, struct str goal,
                                        struct id_fault *fault)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const struct json *id = candidates->values[i];
        if (!((answer->unseen & ~except) >> i & 1) || ids_in_goal(goal, (struct str){id->text, id->len}))
            continue;
        *fault = (struct id_fault){candidates->from[i]->path, ids_quoted(arena, id), NULL};
        return candidates->from[i];
    }
    return NULL;
}

size_t ids_in_result(struct arena *arena, const struct policy *policy, const struct json *result,
                     const struct hash128 **out)
{
    const struct json *values[LEDGER_GIVEN_IDS_MAX];
    size_t found = 0;
    for (size_t i = 0; i < policy->gives_id_count; i++)
        found +=
            json_path_scalars(result, policy->gives_ids[i], values + found, LEDGER_GIVEN_IDS_MAX - found);
    struct hash128 *hashes = ARENA_ARRAY(arena, struct hash128, found + 1);
    for (size_t i = 0; i < found; i++)
        hashes[i] = ids_hash(values[i]);
    *out = hashes;
    return found;
}
