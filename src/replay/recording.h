/*
 * Reads files of recorded calls in constant memory: one line at a time as JSON. What cannot be read is
 * counted by its kind with the first places, and reading goes on.
 *
 *   recording_open, then recording_next until it returns false, then recording_faults, recording_close.
 */
#ifndef TOOLGATE_REPLAY_RECORDING_H
#define TOOLGATE_REPLAY_RECORDING_H

#include "base/err.h"
#include "json/value.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct recording;

#define RECORDING_LINE_MAX_BYTES     67108864u  /* a longer line is skipped, and never in memory as a whole */
#define RECORDING_DOCUMENT_MAX_BYTES 268435456u /* a file that is one JSON document over several lines */
#define RECORDING_LINE_MAX_NODES     1000000u
#define RECORDING_DOCUMENT_MAX_NODES 10000000u
#define RECORDING_VERSION            1 /* `v` of the decision log's records; a higher one is not read */
#define RECORDING_PLACES             3 /* of each kind of fault */
#define RECORDING_WHY_BYTES          128

/* At the end of a followed file: waits for a while. False: nothing more is wanted, and reading ends. */
typedef bool recording_wait(void *owner);

struct recording_options {
    bool documents;       /* a file may be one JSON document over several lines, and a line may be an array */
    bool lenient;         /* files were found and not named: one that cannot be read is counted, and only
                             regular ones are read */
    recording_wait *wait; /* NULL: a file ends. Else the one file is followed: what is written to it later,
                             and to the files that take its place when it is rotated; it need not exist yet */
    void *owner;          /* of `wait` */
};

/* Long documents come in parts. */
enum recording_part {
    RECORDING_WHOLE,
    RECORDING_ITEM,        /* of the one array that the file is, or of the list of a long object */
    RECORDING_LIST_BEGINS, /* the members of a long object before its list, which is empty here */
    RECORDING_LIST_ENDS    /* those behind it */
};

struct recording_line {
    const struct json *value; /* an object; with `documents` also an array */
    struct arena *arena;      /* emptied by the next recording_next: may hold what belongs to this line */
    struct str text;          /* the bytes of the line, without its end */
    const char *file;         /* as it was named; "stdin" for "-" */
    uint64_t number;          /* of the line, from 1 */
    uint64_t serial;          /* of the value, among all of the recording */
    enum recording_part part;
};

enum recording_fault {
    RECORDING_NOT_JSON,
    RECORDING_NOT_OBJECT,
    RECORDING_TOO_LONG,
    RECORDING_NEWER,  /* of a later version of the decision log */
    RECORDING_CUT,    /* the last line of a file ends within its value */
    RECORDING_FAILED, /* the file could not be read on */
    RECORDING_FAULTS
};

struct recording_place {
    const char *file;
    uint64_t number;
    char why[RECORDING_WHY_BYTES]; /* what is wrong with the line; may be empty */
};

struct recording_count {
    uint64_t count;
    struct recording_place places[RECORDING_PLACES]; /* the first ones */
};

extern const struct recording_fault_words {
    const char *name, *text; /* "not_json", "lines that are not JSON" */
} recording_fault_words[RECORDING_FAULTS];

/* The names are borrowed; "-" is standard input. ERR_IO: one of them cannot be opened. */
enum err recording_open(const char *const *files, size_t count, const struct recording_options *options,
                        struct recording **out, struct why *why);
void recording_close(struct recording *recording); /* may be NULL */

/* The next line that could be read, until the next call; empty lines are skipped. False: there are no more.
 */
bool recording_next(struct recording *recording, struct recording_line *out);

/* Counts the line that was read last as no record of a call. */
void recording_reject(struct recording *recording, const char *why);

/* Counts the file that was read last as one that ends too early. */
void recording_cut_off(struct recording *recording, const char *file, const char *why);

/* RECORDING_FAULTS of them. */
const struct recording_count *recording_faults(const struct recording *recording);
uint64_t recording_lines(const struct recording *recording); /* that recording_next returned */

/* Bytes read so far, and of all files; 0: not known, such as of a pipe. */
uint64_t recording_position(const struct recording *recording, uint64_t *total);

#endif
