/* The state of a recording. Private to it: recording.c reads files, lines and values, recording_list.c the
 * items of long documents. */
#ifndef TOOLGATE_REPLAY_RECORDING_INTERNAL_H
#define TOOLGATE_REPLAY_RECORDING_INTERNAL_H

#include "base/buf.h"
#include "replay/recorded_file.h"
#include "replay/recording.h"

#define RECORDING_OBJECT_WHOLE_BYTES 16777216u /* an object that is not longer is read as a whole */

struct recording {
    const char *const *files;
    size_t file_count, next_file;
    struct recording_options options;
    int fd;                    /* -1: no file is open */
    struct unpacker *unpacker; /* of the open file; NULL: it is not packed */
    const char *file;          /* the open one */
    uint64_t number;           /* of its line that was returned last */
    bool ended;                /* the open file has no more bytes */
    bool at_start;             /* nothing of the open file was returned yet */
    bool is_stream;            /* of the open file: events as a model's API streams them */
    bool in_array;             /* within the one array that the open file is: its items are read one by one */
    bool in_object;            /* that array is in an object */
    bool one_line;             /* which has no line end */
    enum recording_part part; /* of the object, whose members wait to be returned; RECORDING_WHOLE: none do */
    uint64_t object_number;
    struct buf members;
    bool given_up; /* nothing more of a followed file is wanted */
    char *buffer;
    size_t capacity, from, end; /* buffer[from, end) is not yet returned */
    struct arena *arena;
    struct json value;
    uint64_t value_lines; /* that the item of an array which was read last spans, less one */
    uint64_t lines, position, total;
    uint64_t file_from; /* the position at which the open file began */
    bool total_known;
    struct recording_count faults[RECORDING_FAULTS];
};

/* CUT_LAST: it has no line end. CUT_SKIPPED: it is no line, and what it is was noted. */
enum cut { CUT_LINE, CUT_LAST, CUT_SKIPPED, CUT_END };

void recording_count_fault(struct recording *recording, enum recording_fault fault, uint64_t number,
                           const char *why);

/* Adds bytes to the buffer; false at the end of the file. */
bool recording_read_more(struct recording *recording);

/* Drops bytes up to and with the end of a line that is too long. */
void recording_skip_line(struct recording *recording);

/* Whether the file begins with an array, or with a long object with a list, over several lines. */
bool recording_begins_list(struct recording *recording);

/* Whether the line that is not yet read to its end is a long object with a list. */
bool recording_is_long_object(struct recording *recording);

/* The next item of the array; CUT_END: it has ended, and lines may follow. */
enum cut recording_cut_item(struct recording *recording, struct str *item);

#endif
