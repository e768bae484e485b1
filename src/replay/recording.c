/*
 * One buffer holds what was read and not yet returned; a line is parsed where it lies. The buffer grows up to
 * the longest line that is accepted; of a longer one only the end is searched.
 */
#include "base/alloc.h"
#include "replay/recording_internal.h"

#include "base/arena.h"
#include "json/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define READ_BYTES UNPACKER_MAX_BYTES

const struct recording_fault_words recording_fault_words[RECORDING_FAULTS] = {
    [RECORDING_NOT_JSON] = {"not_json", "lines that are not JSON"},
    [RECORDING_NOT_OBJECT] = {"not_record", "lines that are no record of a call"},
    [RECORDING_TOO_LONG] = {"too_long", "lines of more than 64 MiB"},
    [RECORDING_NEWER] = {"newer_version", "records of a newer version of toolgate"},
    [RECORDING_CUT] = {"cut_off", "files that end within a line"},
    [RECORDING_FAILED] = {"read_failed", "files that could not be read to their end"},
};

void recording_count_fault(struct recording *r, enum recording_fault fault, uint64_t number, const char *why)
{
    struct recording_count *count = &r->faults[fault];
    if (count->count < RECORDING_PLACES) {
        struct recording_place *place = &count->places[count->count];
        *place = (struct recording_place){.file = r->file, .number = number};
        snprintf(place->why, sizeof(place->why), "%.*s", (int)sizeof(place->why) - 1, why ? why : "");
    }
    count->count++;
}

void recording_reject(struct recording *r, const char *why)
{
    recording_count_fault(r, RECORDING_NOT_OBJECT, r->number, why);
}

void recording_cut_off(struct recording *r, const char *file, const char *why)
{
    const char *now = r->file;
    r->file = file;
    recording_count_fault(r, RECORDING_CUT, 0, why);
    r->file = now;
}

/* ---- files ---- */

static bool is_stdin(const char *file)
{
    return strcmp(file, "-") == 0;
}

enum err recording_open(const char *const *files, size_t count, const struct recording_options *options,
                        struct recording **out, struct why *why)
{
    struct recording *r = alloc_zeroed(sizeof(*r));
    r->files = files;
    r->file_count = count;
    r->fd = -1;
    if (options)
        r->options = *options;
    r->total_known = !r->options.wait;
    *out = r;
    /* Looks before the first byte is read: a misspelled name must not be found after an hour. */
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        if (is_stdin(files[i])) {
            r->total_known = false;
            continue;
        }
        if (r->options.wait && access(files[i], F_OK) != 0 && errno == ENOENT)
            continue;
        bool readable = stat(files[i], &st) == 0 && access(files[i], R_OK) == 0;
        if (!readable && r->options.lenient)
            continue;
        if (!readable || S_ISDIR(st.st_mode)) {
            int error = errno;
            free(r);
            *out = NULL;
            return readable ? err_set(why, ERR_IO, "%s: is a folder; name the files in it, such as %s/*",
                                      files[i], files[i])
                            : err_set(why, ERR_IO, "%s: %s", files[i], strerror(error));
        }
        r->total_known &= S_ISREG(st.st_mode);
        r->total += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    }
    return OK;
}

static void close_file(struct recording *r)
{
    if (r->fd > STDIN_FILENO)
        close(r->fd);
    r->fd = -1;
    unpacker_free(r->unpacker);
    r->unpacker = NULL;
}

void recording_close(struct recording *r)
{
    if (!r)
        return;
    close_file(r);
    arena_free(r->arena);
    buf_clear(&r->members);
    free(r->buffer);
    free(r);
}

static void begin_file(struct recording *r, int fd)
{
    r->fd = fd;
    r->file_from = r->position;
    r->number = 0;
    r->from = r->end = 0;
    r->ended = false;
    r->at_start = true;
    r->in_array = r->in_object = r->one_line = r->is_stream = false;
    r->part = RECORDING_WHOLE;
}

/* Bytes without an end are no recording. -1: `why` says so. A pipe is waited for, but not one that was only
 * found in the place of a file. */
static int open_file(const struct recording *r, const char *file, const char **why)
{
    bool lenient = r->options.lenient;
    struct stat st;
    int fd = is_stdin(file) ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC | (lenient ? O_NONBLOCK : 0));
    *why = fd < 0 ? strerror(errno) : NULL;
    if (fd < 0 || fstat(fd, &st) != 0)
        return fd;
    bool endless = (S_ISCHR(st.st_mode) && !isatty(fd) && st.st_rdev != makedev(1, 3)) || S_ISBLK(st.st_mode);
    if (!endless && !(lenient && !S_ISREG(st.st_mode)))
        return fd;
    *why = endless ? "it is a device, not a file" : "it is no regular file";
    if (fd != STDIN_FILENO)
        close(fd);
    errno = EINVAL;
    return -1;
}

/* False: there are no more files. */
static bool open_next(struct recording *r)
{
    close_file(r);
    while (r->fd < 0 && r->next_file < r->file_count) {
        const char *file = r->files[r->next_file++];
        r->file = is_stdin(file) ? "stdin" : file;
        const char *why;
        int fd = open_file(r, file, &why);
        while (fd < 0 && errno == ENOENT && r->options.wait && r->options.wait(r->options.owner))
            fd = open_file(r, file, &why); /* a followed file may not exist yet */
        begin_file(r, fd);
        if (r->fd < 0)
            recording_count_fault(r, RECORDING_FAILED, 0, why);
    }
    return r->fd >= 0;
}

/* ---- a followed file ---- */

/* At the end of the file: waits until there may be more. False: it was rotated, or nothing more is wanted. */
static bool wait_for_more(struct recording *r, bool *rotated)
{
    struct stat file;
    if (rotated_file_is_away(r->file, r->fd)) {
        *rotated = true; /* the writer may have written between the end and the look: one more read */
        return true;
    }
    if (fstat(r->fd, &file) == 0 && file.st_size < lseek(r->fd, 0, SEEK_CUR)) { /* it was truncated */
        /* What was read of it is not in it any more: its lines are counted from the first again. */
        if (r->end > r->from)
            recording_count_fault(r, RECORDING_CUT, r->number + 1, "the file was truncated");
        if (lseek(r->fd, 0, SEEK_SET) == 0)
            begin_file(r, r->fd);
        return true;
    }
    r->given_up = !r->options.wait(r->options.owner);
    return !r->given_up;
}

static bool open_rotated(struct recording *r)
{
    bool gap = false, going = true;
    int next = -1;
    while (going && (next = rotated_file_next(r->file, r->fd, &gap)) < 0)
        going = r->options.wait(r->options.owner);
    close_file(r);
    if (next < 0)
        return false;
    if (gap)
        recording_count_fault(r, RECORDING_FAILED, 0, "it was rotated away faster than it was read");
    begin_file(r, next);
    return true;
}

/* ---- bytes ---- */

/* `*why`: if it is -1. */
static ssize_t read_bytes(struct recording *r, const char **why)
{
    ssize_t n;
    if (r->from) {
        memmove(r->buffer, r->buffer + r->from, r->end - r->from);
        r->end -= r->from;
        r->from = 0;
    }
    if (r->capacity - r->end < READ_BYTES) {
        size_t capacity = r->capacity * 2 > r->end + READ_BYTES ? r->capacity * 2 : r->end + READ_BYTES;
        char *longer = realloc(r->buffer, capacity);
        if (!longer)
            abort();
        r->buffer = longer;
        r->capacity = capacity;
    }
    char *to = r->buffer + r->end;
    if (r->unpacker)
        return unpacker_read(r->unpacker, r->fd, to, READ_BYTES, why);
    do
        n = read(r->fd, to, READ_BYTES);
    while (n < 0 && errno == EINTR);
    *why = strerror(errno);
    bool unpacks = n > 0 && r->at_start && !r->end && str_starts((struct str){to, (size_t)n}, PACKED_BY_ZSTD);
    if (!unpacks || !(r->unpacker = unpacker_new((struct str){to, (size_t)n})))
        return n;
    return unpacker_read(r->unpacker, r->fd, to, READ_BYTES, why);
}

bool recording_read_more(struct recording *r)
{
    bool rotated = false;
    const char *why;
    ssize_t n = read_bytes(r, &why);
    while (n == 0 && r->options.wait && !rotated && wait_for_more(r, &rotated))
        n = read_bytes(r, &why);
    if (n <= 0) {
        if (n < 0)
            recording_count_fault(r, RECORDING_FAILED, r->number, why);
        r->ended = true;
        return false;
    }
    r->end += (size_t)n;
    off_t packed = r->unpacker ? lseek(r->fd, 0, SEEK_CUR) : -1;
    r->position = packed < 0 ? r->position + (uint64_t)n : r->file_from + (uint64_t)packed;
    return true;
}

void recording_skip_line(struct recording *r)
{
    for (;;) {
        char *newline = r->end > r->from ? memchr(r->buffer + r->from, '\n', r->end - r->from) : NULL;
        if (newline) {
            r->from = (size_t)(newline - r->buffer) + 1;
            return;
        }
        r->from = r->end = 0;
        if (!recording_read_more(r))
            return;
    }
}

/* The next line. */
static enum cut cut_line(struct recording *r, struct str *line)
{
    size_t searched = 0;
    for (;;) {
        size_t have = r->end - r->from;
        char *newline =
            have > searched ? memchr(r->buffer + r->from + searched, '\n', have - searched) : NULL;
        size_t len = newline ? (size_t)(newline - r->buffer) - r->from : have;
        if (len > RECORDING_LINE_MAX_BYTES) {
            r->number++;
            recording_count_fault(r, RECORDING_TOO_LONG, r->number, NULL);
            recording_skip_line(r);
            return CUT_SKIPPED;
        }
        if (newline || r->ended) {
            if (!newline && !have)
                return CUT_END;
            *line = (struct str){r->buffer + r->from, len};
            r->from += len + (newline != NULL);
            r->number++;
            return newline ? CUT_LINE : CUT_LAST;
        }
        if (have > RECORDING_OBJECT_WHOLE_BYTES && searched <= RECORDING_OBJECT_WHOLE_BYTES &&
            recording_is_long_object(r))
            return CUT_SKIPPED;
        searched = have;
        recording_read_more(r);
    }
}

/* ---- values ---- */

/* Duplicate keys and lone surrogates are no fault of the recording: what a model sent is judged as it is. */
static bool parse(struct recording *r, struct str text, uint32_t nodes, struct json_error *error)
{
    struct json_limits limits = {.nodes = nodes};
    const char *what;
    arena_free(r->arena);
    r->arena = arena_new();
    return json_parse_repaired(r->arena, text, &limits, &r->value, error, &what) == OK;
}

static bool is_usable(struct recording *r, uint64_t number)
{
    if (!json_is(&r->value, JSON_OBJECT) && !(r->options.documents && json_is(&r->value, JSON_ARRAY))) {
        char why[64];
        snprintf(why, sizeof(why), "it is a JSON %s", json_type_name((enum json_type)r->value.type));
        recording_count_fault(r, RECORDING_NOT_OBJECT, number, why);
        return false;
    }
    /* The record's `v` is a version only where the record is one of ours. */
    int64_t version;
    if (json_get_text(&r->value, "decision_id") && json_int(json_get_text(&r->value, "v"), &version) &&
        version > RECORDING_VERSION) {
        recording_count_fault(r, RECORDING_NEWER, number, NULL);
        return false;
    }
    return true;
}

/* The first line is the beginning of a value: perhaps the file is one value over several lines. False: it is
 * not, and the first line is the next one again. */
static bool parse_document(struct recording *r, struct str first, struct str *text, bool *cut)
{
    struct json_error error;
    *cut = false;
    r->from -= first.len + 1; /* cut_line took the line and its end */
    r->number = 0;
    while (!r->ended && r->end <= RECORDING_DOCUMENT_MAX_BYTES)
        recording_read_more(r);
    if (!r->ended)
        return false;
    *text = (struct str){r->buffer + r->from, r->end - r->from};
    bool parsed = parse(r, *text, RECORDING_DOCUMENT_MAX_NODES, &error);
    *cut = !parsed && error.code == JSON_ERROR_SYNTAX && error.offset >= str_trim(*text).len;
    if (parsed || *cut)
        r->from = r->end;
    return parsed;
}

/* The first bytes tell what packed the file. Its lines are not records: one message with the fix instead of a
 * fault for each. */
static bool skip_packed_file(struct recording *r, struct str text)
{
    static const struct {
        const char *bytes, *why;
    } formats[] = {
        {PACKED_BY_ZSTD, "it is compressed: install libzstd1, or zstd -dc FILE | toolgate … -"},
        {"\x1f\x8b", "it is compressed: gzip -dc FILE | toolgate … -"},
        {"\3757zXZ", "it is compressed: xz -dc FILE | toolgate … -"},
        {"BZh", "it is compressed: bzip2 -dc FILE | toolgate … -"},
    };
    for (size_t i = r->unpacker ? 1 : 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (str_starts(text, formats[i].bytes)) {
            recording_count_fault(r, RECORDING_FAILED, 0, formats[i].why);
            close_file(r);
            return true;
        }
    return false;
}

/* A line of an event stream, of which only the data are read: the text after "data:"; empty: it has none. */
static struct str event_data(struct recording *r, struct str text)
{
    static const char *const fields[] = {"event:", "id:", "retry:", ":"};
    bool is_data = str_starts(text, "data:"), is_field = false;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        is_field |= str_starts(text, fields[i]);
    r->is_stream |= is_data || (is_field && r->at_start);
    if (!r->is_stream || (!is_data && !is_field))
        return text;
    text = is_data ? str_trim(str_from(text, 5)) : STR_NONE;
    return str_is(text, "[DONE]") ? STR_NONE : text;
}

static bool return_value(struct recording *r, struct str text, uint64_t number, enum recording_part part,
                         struct recording_line *out)
{
    *out = (struct recording_line){.value = &r->value,
                                   .arena = r->arena,
                                   .text = text,
                                   .file = r->file,
                                   .number = number,
                                   .serial = ++r->lines,
                                   .part = part};
    return true;
}

/* True: `out` has a line. False: it had none, and its faults are counted. */
static bool read_line(struct recording *r, struct str line, bool last, struct recording_line *out)
{
    struct json_error error;
    bool first = r->at_start;
    struct str text = str_trim(line);
    if (first && str_starts(text, "\xEF\xBB\xBF"))
        text = str_from(text, 3);
    text = event_data(r, text);
    r->at_start &= !r->is_stream;
    if (!text.len || (first && skip_packed_file(r, text)))
        return false;
    r->at_start = false;
    bool whole = false, parsed = parse(r, text, RECORDING_LINE_MAX_NODES, &error);
    if (!parsed && first && !last && r->options.documents && (*text.at == '{' || *text.at == '[')) {
        bool cut;
        whole = parsed = parse_document(r, line, &text, &cut);
        if (cut) {
            recording_count_fault(r, RECORDING_CUT, 0, "it is one JSON document, and its end is missing");
            close_file(r); /* its lines are not records, and reading them would count a fault for each */
            return false;
        }
        if (!whole)
            recording_skip_line(
                r); /* the first line once more, which is no value; the others are read as lines */
        r->number = 1;
    }
    if (!parsed)
        recording_count_fault(r, last ? RECORDING_CUT : RECORDING_NOT_JSON, r->number, error.text);
    if (!parsed || !is_usable(r, r->number))
        return false;
    return return_value(r, text, r->number, RECORDING_WHOLE, out);
}

/* The members of an object before or behind its list. */
static bool next_members(struct recording *r, struct recording_line *out)
{
    struct json_error error;
    enum recording_part part = r->part;
    struct str text = buf_view(&r->members);
    r->part = RECORDING_WHOLE;
    if (parse(r, text, RECORDING_LINE_MAX_NODES, &error))
        return return_value(r, text, r->object_number, part, out);
    recording_count_fault(r, RECORDING_NOT_JSON, r->object_number, error.text);
    return false;
}

/* The next item of an array as a line. */
static bool next_item(struct recording *r, struct recording_line *out)
{
    struct str item;
    struct json_error error;
    enum cut cut = recording_cut_item(r, &item);
    if (cut == CUT_END || cut == CUT_SKIPPED)
        return false;
    uint64_t number = r->number;
    bool parsed = parse(r, item, RECORDING_LINE_MAX_NODES, &error);
    r->number += r->value_lines;
    if (!parsed && cut != CUT_LAST) /* an item that the file's end cuts off is counted with the end */
        recording_count_fault(r, RECORDING_NOT_JSON, number, error.text);
    return parsed && is_usable(r, number) && return_value(r, item, number, RECORDING_ITEM, out);
}

bool recording_next(struct recording *r, struct recording_line *out)
{
    for (;;) {
        struct str line;
        if (r->fd < 0 && !open_next(r))
            return false;
        if (r->at_start && r->options.documents && !r->options.wait && recording_begins_list(r))
            r->at_start = false;
        if (r->part) {
            if (next_members(r, out))
                return true;
            continue;
        }
        if (r->in_array) {
            if (next_item(r, out))
                return true;
            continue;
        }
        enum cut cut = cut_line(r, &line);
        if ((cut == CUT_LINE || cut == CUT_LAST) && read_line(r, line, cut == CUT_LAST, out))
            return true;
        if (cut != CUT_END)
            continue;
        if (!r->options.wait || r->given_up)
            close_file(r);
        else if (!open_rotated(r))
            return false;
    }
}

/* ---- figures ---- */

const struct recording_count *recording_faults(const struct recording *r)
{
    return r->faults;
}

uint64_t recording_lines(const struct recording *r)
{
    return r->lines;
}

uint64_t recording_position(const struct recording *r, uint64_t *total)
{
    *total = r->total_known ? r->total : 0;
    return r->unpacker ? r->position : r->position - (r->end - r->from);
}
