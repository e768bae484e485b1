/*
 * What a recording says of one call, in any format: the decision log of toolgate, lines of {session,
 * tool, arguments, result}; and MCP's JSON-RPC and the transcripts of assistants and SDKs, for which the
 * owner has readers.
 */
#ifndef TOOLGATE_REPLAY_RECORDED_CALL_H
#define TOOLGATE_REPLAY_RECORDED_CALL_H

#include "replay/recording.h"

#include "gate/verdict.h"

enum recorded_format {
    RECORDED_ANY, /* found out for each line */
    RECORDED_DECISIONS,
    RECORDED_NDJSON,
    RECORDED_MCP, /* this and later ones: `transcript` reads them */
    RECORDED_OPENAI,
    RECORDED_ANTHROPIC
};

/* "decisions", "ndjson", …; false: no such format. */
bool recorded_format_named(struct str name, enum recorded_format *out);

enum recorded_kind {
    RECORDED_CALL,      /* the call, and its result if the recording has one */
    RECORDED_CHECK,     /* the call; its result comes later, with the same id */
    RECORDED_REPORT,    /* the result of an earlier RECORDED_CHECK */
    RECORDED_USAGE,     /* no call: what its session's model has read and written */
    RECORDED_COMPACTION /* no call: the model no longer sees what its session has read */
};

/* In tokens; corrects what was said before, and may be negative. */
struct recorded_usage {
    int64_t input, cached, output; /* `cached` is the part of `input` that came from a cache */
};

struct recorded_call {
    enum recorded_kind kind;
    struct str id; /* joins a report to its check, within the session */
    struct str session, user, step, label, ext;
    struct str agent; /* a sub-agent of the session; empty: its main agent */
    uint32_t turn;
    bool by_person; /* a person began the turn */
    bool has_uid;
    uint32_t uid;
    struct str tool, toolset;
    /* as the model sent them, perhaps a string that holds JSON; NULL: none were sent */
    const struct json *arguments;
    bool arguments_unknown;    /* they were recorded as a hash only */
    const struct json *masked; /* an array of JSON pointers whose values were masked; NULL: none */
    bool repeated;             /* the daemon counted it as a repetition of the call before */
    int64_t at_ms;             /* 0: the recording has no time */
    bool ran;                  /* there is a result, or only its class and hash */
    bool failed;               /* the tool reported an error */
    bool refused;              /* a gateway refused the call: it did not run */
    const struct json *result; /* NULL: only its class and hash are known, or it has none */
    struct str error;          /* of a failed call: its message */
    bool perhaps;              /* of a report: it may answer something else than a call */
    bool by_class;             /* the result is known by its class and hash alone */
    struct str result_hash;
    enum error_class result_class;
    struct recorded_usage usage;
    const struct json *tools;          /* definitions that the recording carries, an array; NULL: none */
    const struct recording_line *line; /* where it is */
};

/* Receives each call of a line, in their order. Everything is borrowed until the next line is read. */
typedef void recorded_call_seen(void *owner, const struct recorded_call *call);

struct recorded_reader;

/* Reads a line of a transcript, and calls `reader->seen`. False: it is none; `why` may say what it is. A line
 * that is NULL: the reader's file has ended; false: within something, as `why` says. */
typedef bool recorded_transcript(void *owner, struct recorded_reader *reader,
                                 const struct recording_line *line, const char **why);

struct recorded_reader {
    enum recorded_format format;
    recorded_call_seen *seen;
    void *owner;
    recorded_transcript *transcript; /* NULL: transcripts are not read */
    void *transcripts;               /* its owner */
    const char *file;                /* whose lines are read */
    struct arena *file_arena;        /* what outlives a line; NULL: nothing yet */
    const struct json *tools;
};

/* Reads the calls of a line. False: it has none and is no part of a recording; `why` says what was expected.
 */
bool recorded_calls_read(struct recorded_reader *reader, const struct recording_line *line, const char **why);
void recorded_reader_clear(struct recorded_reader *reader);

/* What a tool returned as a value that toolgate/report takes: a string becomes text content. */
const struct json *recorded_result(struct arena *arena, const struct json *value);

/* ---- for readers of transcripts ---- */

/* Milliseconds since 1970 of an RFC 3339 time (UTC if it names no zone), or of seconds, milliseconds or
 * nanoseconds, also as digits. 0: it is no time, or one that the ledger cannot keep, which counts seconds
 * since 1970 in 32 bits. */
int64_t recorded_time(const struct json *value);
/* APIs carry the arguments as a string that holds an object, which is no fault of the model: the object. A
 * string that holds none, of a call that was cut off, stays one. */
const struct json *recorded_arguments(struct arena *arena, const struct json *value);
/* From what the recording has of the call; `failed` true, what it says, or NULL. */
void recorded_set_result(struct recorded_call *call, const struct json *result, const struct json *failed);

#endif
