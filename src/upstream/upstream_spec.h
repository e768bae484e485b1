/*
 * What is configured of those who run tools for us, as data: an upstream (an
 * MCP server, or an address that others share), a command, an HTTP endpoint.
 * Read once from the configuration or a policy, never changed, compared after
 * a reload. Texts may hold ${NAME}, ${NAME:-otherwise}, ${file:/path}: filled in
 * when they are used (upstream/secrets.h), so that no secret stands in memory
 * that is shown.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_SPEC_H
#define TOOLGATE_UPSTREAM_UPSTREAM_SPEC_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UPSTREAM_NAME_MAX_BYTES 32u /* it is a prefix of tool names, which have 64 */
#define UPSTREAM_TIMEOUT_MS     60000u
#define UPSTREAM_START_MS       10000u /* until `initialize` is answered and the tools are listed */

struct name_value { /* an environment variable, a header */
    struct str name, value;
};

struct name_values {
    const struct name_value *list;
    size_t count;
};

enum upstream_kind {
    UPSTREAM_STDIO, /* an MCP server that we start */
    UPSTREAM_HTTP,  /* an MCP server over streamable HTTP */
    UPSTREAM_REST   /* an address and headers for the http = {…} of policies; offers no tools itself */
};

enum upstream_prefix { UPSTREAM_PREFIX_ON_COLLISION, UPSTREAM_PREFIX_ALWAYS };

struct upstream_spec {
    struct str name;
    struct str from; /* the file that names it, for messages */
    enum upstream_kind kind;
    const struct str *argv; /* stdio: the command and its arguments */
    size_t argc;
    struct name_values
        env;        /* stdio: beside HOME LOGNAME PATH SHELL TERM USER LANG TZ and the like of the daemon */
    struct str cwd; /* empty: the daemon's */
    struct str url; /* http, rest */
    struct name_values headers;
    struct str ca_file; /* https: trusted instead of the system's; empty: the system's */
    bool lazy; /* started at its first call; its tools are known from the last time, or learnt once */
    enum upstream_prefix prefix;
    const struct str *tools; /* globs; none: all */
    size_t tool_count;
    uint32_t timeout_ms, start_ms; /* of one call; of a start */
    uint32_t in_flight;            /* calls at once; 0: as many as come */
};

/* Everything that matters to one that runs is the same; times, counts and which tools are taken do not. */
bool upstream_spec_equal(const struct upstream_spec *a, const struct upstream_spec *b);

struct arena;
/* With all its texts. */
struct upstream_spec *upstream_spec_copy(struct arena *arena, const struct upstream_spec *spec);

/* ---- of policies ----------------------------------------------------------- */

#define EXEC_TIMEOUT_MS    30000u
#define EXEC_OUTPUT_BYTES  4194304u    /* of stdout; more ends the command */
#define EXEC_MEMORY_BYTES  2147483648u /* that it may write to */
#define EXEC_FILE_BYTES    1073741824u /* of each file it writes */
#define EXEC_WORDS_MAX     256u        /* in a policy */
#define EXEC_ARG_MAX_BYTES 131071u     /* of one argument on a command line, as Linux has it */

/* One element of the command line; "{path}" stands for that argument, whole or within a text (exec_argv.h).
 */
struct exec_word {
    struct str text;
    uint32_t group;  /* 0: it stands by itself; those of one group go in together or not at all */
    struct str when; /* of a group: goes in where this argument is there, and not false; empty: where all that
                        it names are there */
};

enum exec_exit_meaning { EXEC_EXIT_REFUSED, EXEC_EXIT_OK, EXEC_EXIT_TRANSIENT, EXEC_EXIT_BROKEN };
struct exec_exit {
    uint32_t code;
    enum exec_exit_meaning means;
};

enum exec_output {
    EXEC_OUTPUT_AUTO,  /* JSON where it is JSON, else text */
    EXEC_OUTPUT_JSON,  /* anything else is broken */
    EXEC_OUTPUT_LINES, /* one JSON value a line: an array of them */
    EXEC_OUTPUT_TEXT   /* whatever it looks like */
};

struct exec_spec {
    const struct exec_word *words; /* the first is the command */
    size_t word_count;
    bool on_stdin;       /* the arguments go in as one JSON line: where no word names one */
    bool dashes;         /* values may begin with "-" where a command would take them for options */
    uint32_t plain_from; /* from this word on the command takes none for an option; 0: not known */
    enum exec_output output;
    struct str cwd;         /* empty: the daemon's */
    struct name_values env; /* beside PATH HOME LANG TZ TERM of the daemon */
    uint32_t timeout_ms, output_bytes;
    uint64_t memory_bytes, file_bytes; /* 0: as many as it likes */
    uint32_t cpu_s, processes;         /* likewise */
    const struct exec_exit *exits; /* what codes mean; 0 is a result, others that are not here a refusal */
    size_t exit_count;
};

struct http_spec {
    struct str method; /* "GET" … */
    struct str url;    /* whole, or from "/" on where the policy names an upstream; {name} is an argument */
    struct name_values headers; /* {name} likewise */
    const struct str *query;    /* arguments that go into the query of other methods than GET and DELETE */
    size_t query_count;
    uint32_t timeout_ms;
    struct str pick; /* "data.items": what of the answer is the result; empty: all of it */
    struct str ca_file;
};

#endif
