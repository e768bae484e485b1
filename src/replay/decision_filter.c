/* Filters over records. */
#include "replay/decision_filter.h"

#include "base/suggest.h"
#include "gate/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECOND_US 1000000LL

/* ---- words ---- */

/* The next of several words with commas between them. */
static struct str next_word(struct str *list)
{
    const char *comma = list->len ? memchr(list->at, ',', list->len) : NULL;
    struct str word = {list->at, comma ? (size_t)(comma - list->at) : list->len};
    *list = str_from(*list, word.len + (comma != NULL));
    return str_trim(word);
}

static bool has_match(struct str list, struct str value)
{
    if (!list.len)
        return true;
    while (list.len)
        if (str_glob(next_word(&list), value))
            return true;
    return false;
}

static bool matches_user(struct str list, const struct decision *d)
{
    char uid[24];
    snprintf(uid, sizeof(uid), "%lld", (long long)d->uid);
    return has_match(list, d->user) || (d->uid >= 0 && has_match(list, str_of(uid)));
}

bool decision_filter_matches(const struct decision_filter *f, const struct decision *d)
{
    const struct decision_verdict *verdict = f->would ? &d->would : &d->given;
    if (f->would && !verdict->verdict.len)
        return false;
    if (f->refused && !(f->would ? decision_would_be_refused(d) : decision_is_refused(d)))
        return false;
    if (f->since_us >= 0 && d->ts_us < f->since_us)
        return false;
    if (f->until_us >= 0 && (d->ts_us < 0 || d->ts_us >= f->until_us))
        return false;
    return (f->turn < 0 || d->turn == f->turn) && has_match(f->tool, d->tool) &&
           has_match(f->verdict, verdict->verdict) && has_match(f->class, verdict->class) &&
           has_match(f->code, verdict->code) && has_match(f->session, d->session) &&
           (!f->user.len || matches_user(f->user, d));
}

/* Each word of the list is, or as a glob matches, one of the names. */
static enum err check_words(const char *what, struct str list, const struct str *names, size_t count,
                            struct why *why)
{
    while (list.len) {
        struct str word = next_word(&list);
        bool known = false;
        for (size_t i = 0; i < count && !known; i++)
            known = str_glob(word, names[i]);
        if (known)
            continue;
        struct buf all = {0};
        for (size_t i = 0; i < count; i++)
            buf_printf(&all, "%s" STR_FMT, i ? ", " : "", STR_ARG(names[i]));
        struct str near = suggest_closest(word, names, count);
        enum err err =
            near.len ? err_set(why, ERR_PARSE, "no %s is called '" STR_FMT "' (did you mean '" STR_FMT "'?)",
                               what, STR_ARG(word), STR_ARG(near))
                     : err_set(why, ERR_PARSE, "no %s is called '" STR_FMT "'; they are " STR_FMT, what,
                               STR_ARG(word), STR_ARG(buf_view(&all)));
        buf_clear(&all);
        return err;
    }
    return OK;
}

enum err decision_filter_check(const struct decision_filter *f, struct why *why)
{
    struct str verdicts[VERDICT_KINDS], classes[CLASS_COUNT];
    for (int i = 0; i < VERDICT_KINDS; i++)
        verdicts[i] = str_of(verdict_name((enum verdict_kind)i));
    for (int i = 0; i < CLASS_COUNT; i++)
        classes[i] = str_of(error_class_info((enum error_class)i)->name);
    enum err err = check_words("verdict", f->verdict, verdicts, VERDICT_KINDS, why);
    return err != OK ? err : check_words("class", f->class, classes, CLASS_COUNT, why);
}

/* ---- moments ---- */

static bool read_ago(struct str text, int64_t now_us, int64_t *us)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
    int64_t count = 0;
    size_t digits = 0;
    while (digits < text.len && digits < 7 && ascii_is_digit(text.at[digits]))
        count = count * 10 + (text.at[digits++] - '0');
    if (!digits || text.len != digits + 1)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (text.at[digits] == units[i].unit) {
            *us = now_us - count * units[i].seconds * SECOND_US;
            return true;
        }
    return false;
}

/* The local time of this host: strptime reads it, mktime knows the offset of that day. */
static bool read_local(const char *text, bool end, int64_t *us)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                          "%Y-%m-%d %H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        struct tm tm = {0};
        const char *rest = strptime(text, formats[i], &tm);
        struct tm given = tm;
        if (!rest || *rest)
            continue;
        tm.tm_isdst = given.tm_isdst = -1;
        if (end && i + 1 == sizeof(formats) / sizeof(formats[0]))
            given.tm_mday++;
        time_t seconds = mktime(&given);
        /* strptime takes a 31st of February, mktime makes a day of March of it. */
        struct tm same = tm;
        mktime(&same);
        if (same.tm_mday != tm.tm_mday)
            return false;
        *us = (int64_t)seconds * SECOND_US;
        return true;
    }
    return false;
}

enum err decision_filter_moment(struct str text, int64_t now_us, bool end, int64_t *us, struct why *why)
{
    char copy[64];
    snprintf(copy, sizeof(copy), STR_FMT, STR_ARG(text));
    bool has_offset = text.len > 19; /* a full time and more: "Z", a fraction, "+01:00" */
    if (text.len < sizeof(copy) &&
        (read_ago(text, now_us, us) || (has_offset && decision_time(text, us)) || read_local(copy, end, us)))
        return OK;
    return err_set(why, ERR_PARSE,
                   "expected a span before now, such as 90m, 12h, 1d or 2w, a date such as 2026-11-20, or a "
                   "local time such as \"2026-11-20 14:30\", got '" STR_FMT "'",
                   STR_ARG(text));
}
