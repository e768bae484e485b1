/* Only calls with a late hook make a row, so that the list is empty in peace, and short otherwise. */
#include "gate/busy.h"

#include "base/hash.h"
#include "json/write.h"

#include <string.h>

static struct busy_row *find(const struct busy *busy, uid_t uid, struct str tool)
{
    if (!busy->count)
        return NULL;
    uint64_t hash = hash_stable(tool).low;
    for (size_t i = 0; i < busy->count; i++) {
        const struct busy_row *row = &busy->rows[i];
        if (row->uid == uid && row->tool_hash == hash)
            return (struct busy_row *)row;
    }
    return NULL;
}

static struct busy_row *add(struct busy *busy, uid_t uid, struct str tool)
{
    struct busy_row *row = &busy->rows[0];
    if (busy->count < BUSY_MAX)
        row = &busy->rows[busy->count++];
    else
        for (size_t i = 1; i < busy->count; i++)
            if (busy->rows[i].late_ms < row->late_ms)
                row = &busy->rows[i];
    struct str name = str_cut(tool, BUSY_TOOL_MAX_BYTES - 1);
    *row = (struct busy_row){.uid = uid, .tool_hash = hash_stable(tool).low};
    memcpy(row->tool, name.at, name.len);
    return row;
}

int64_t busy_left_ms(const struct busy *busy, uid_t uid, struct str tool, int64_t now_ms)
{
    const struct busy_row *row = find(busy, uid, tool);
    return row && row->until_ms > now_ms ? row->until_ms - now_ms : 0;
}

bool busy_count(struct busy *busy, uid_t uid, struct str tool, bool late, int64_t now_ms, bool dry)
{
    struct busy_row *row = find(busy, uid, tool);
    if (!late) {
        if (row && row->until_ms <= now_ms) /* a report during the pause does not end it */
            *row = busy->rows[--busy->count];
        return false;
    }
    if (!row)
        row = add(busy, uid, tool);
    row->late_ms = now_ms;
    if (++row->late < (dry ? BUSY_DRY_IN_A_ROW : BUSY_LATE_IN_A_ROW))
        return false;
    row->until_ms = now_ms + (dry ? BUSY_DRY_MS : BUSY_MS);
    busy->times++;
    return true;
}

void busy_write_status(struct json_out *out, const struct busy *busy, bool all, uid_t uid, int64_t now_ms)
{
    size_t written = 0;
    for (size_t i = 0; i < busy->count; i++) {
        const struct busy_row *row = &busy->rows[i];
        if (row->until_ms <= now_ms || (!all && row->uid != uid))
            continue;
        if (!written++)
            json_field_open(out, "busy", '[');
        json_put_object(out, FIELD_TEXT("tool", row->tool), FIELD_NUM("uid", row->uid),
                        FIELD_NUM("left_s", (row->until_ms - now_ms + 999) / 1000));
    }
    if (written)
        json_close(out, ']');
}
