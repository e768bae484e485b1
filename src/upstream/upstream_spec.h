/*
 * Configuration of what runs tools, as immutable data: an upstream (an MCP
 * server, or an address that http = {…} tools share), a command, an HTTP
 * endpoint. Strings may hold ${NAME}, ${NAME:-default} and ${file:/path}; they
 * are expanded on use (secrets.h), so that nothing here holds a secret.
 */
#ifndef TOOLGATE_UPSTREAM_UPSTREAM_SPEC_H
#define TOOLGATE_UPSTREAM_UPSTREAM_SPEC_H

#include "base/str.h"
#include "upstream/confine/confine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UPSTREAM_NAME_MAX_BYTES 32u /* it is a prefix of tool names, which have 64 */
#define UPSTREAM_TIMEOUT_MS     60000u
#define UPSTREAM_IN_FLIGHT      1024u   /* calls at once if in_flight is not given */
#define UPSTREAM_QUEUED         1024u   /* calls that wait for an upstream with in_flight */
#define UPSTREAM_START_MS       60000u  /* until `initialize` is answered and the tools are listed */
#define UPSTREAM_USER_IDLE_MS   600000u /* until a user's own instance ends, if user_idle is not given */

struct arena;

struct name_value { /* an environment variable, a header */
    struct str name, value;
};

struct name_values {
    const struct name_value *list;
    size_t count;
};

struct name_globs { /* which names are meant, with '*' */
    const struct str *list;
    size_t count;
    bool given; /* false: all of them; true without any: none */
};
bool name_globs_fit(const struct name_globs *globs, struct str name);

struct name_values name_values_copy(struct arena *arena, struct name_values from);

enum upstream_kind {
    UPSTREAM_STDIO, /* an MCP server that toolgate starts */
    UPSTREAM_HTTP,  /* an MCP server over streamable HTTP */
    UPSTREAM_REST   /* an address and headers for the http = {…} of policies; has no tools of its own */
};

enum upstream_prefix { UPSTREAM_PREFIX_ON_COLLISION, UPSTREAM_PREFIX_ALWAYS };

struct upstream_spec {
    struct str name;
    struct str from; /* the file that configures it, for messages */
    enum upstream_kind kind;
    const struct str *argv; /* stdio: the command and its arguments */
    size_t argc;
    struct name_values env; /* stdio: added to HOME, PATH, LANG and the like of the daemon */
    struct str cwd;         /* empty: the daemon's */
    struct str user;        /* stdio, of the spawner: whom the process runs as; empty: the spawner's own */
    struct str spawner;     /* stdio: the socket of the spawner that starts it; empty: the daemon does */
    struct confine_spec sandbox; /* stdio: what the process may reach */
    struct str url;              /* http, rest */
    struct name_values headers;
    struct str ca_file;    /* https: trusted instead of the system's authorities; empty: those */
    bool per_user;         /* each user who calls has an instance; %u in ${file:…} is the user's name */
    uint32_t user_idle_ms; /* 0: UPSTREAM_USER_IDLE_MS */
    bool forward_meta;     /* the _meta of callers, but for what is the gate's or MCP's */
    bool lazy;             /* started at its first call; its tools come from the cache if it has them */
    enum upstream_prefix prefix;
    struct name_globs tools;              /* beside those that policies name */
    struct name_globs excluded;           /* tools that are not served, whatever else names them */
    bool instructions;                    /* are passed to clients */
    struct name_globs prompts, resources; /* resources: of their URIs, and of their templates */
    uint32_t timeout_ms, start_ms;        /* of one call; of a start */
    uint32_t resubscribe_ms; /* from a subscription that the server ended to the next; 0: MCP_RELISTEN_MS */
    uint32_t in_flight;      /* calls at once, others wait; 0: UPSTREAM_IN_FLIGHT, others are refused */
    unsigned schema_mode;    /* of its tools: enum policy_schema_mode; 0: not given */
};

/* False: the upstream has to be restarted. Ignores times, counts and the selection of tools. */
bool upstream_spec_equal(const struct upstream_spec *a, const struct upstream_spec *b);

/* "%u" within a ${file:…} of `text`. */
bool upstream_spec_names_user(struct str text);

/* Takes the next ${file:PATH} off `text`, with the text before it. False: there is no other one. */
bool upstream_spec_next_file(struct str *text, struct str *before, struct str *path);

struct upstream_user {
    uid_t uid;
    struct str name;
};

/* A deep copy. With a `user` (may be NULL) ${file:/x/%u} becomes ${user-file:UID:/x/NAME}, see secrets.h. */
struct upstream_spec *upstream_spec_copy(struct arena *arena, const struct upstream_spec *spec,
                                         const struct upstream_user *user);

/* ---- of policies ----------------------------------------------------------- */

#define EXEC_TIMEOUT_MS    30000u
#define EXEC_OUTPUT_BYTES  4194304u    /* of stdout; more ends the command */
#define EXEC_MEMORY_BYTES  2147483648u /* writable memory */
#define EXEC_FILE_BYTES    1073741824u /* of each file it writes */
#define EXEC_WORDS_MAX     256u        /* in a policy */
#define EXEC_ARG_MAX_BYTES 131071u     /* of one argument on a command line: Linux' limit */

/* One element of the command line; "{path}" in it stands for that argument (exec/exec.h). */
struct exec_word {
    struct str text;
    uint32_t group;  /* words of one group are included or omitted together; 0: a word by itself */
    struct str when; /* of a group: included if this argument is present and not false; empty: if every
                        argument that it names is present */
};

enum exec_exit_meaning { EXEC_EXIT_REFUSED, EXEC_EXIT_OK, EXEC_EXIT_TRANSIENT, EXEC_EXIT_BROKEN };
struct exec_exit {
    uint32_t code;
    enum exec_exit_meaning means;
};

enum exec_output {
    EXEC_OUTPUT_AUTO,  /* JSON if it parses, else text */
    EXEC_OUTPUT_JSON,  /* anything else is broken */
    EXEC_OUTPUT_LINES, /* one JSON value per line: an array of them */
    EXEC_OUTPUT_TEXT
};

struct exec_spec {
    const struct exec_word *words; /* the first is the command */
    size_t word_count;
    bool on_stdin;       /* the arguments are written to stdin as one line of JSON */
    bool dashes;         /* values may begin with "-" although the command could take them for options */
    uint32_t plain_from; /* from this word on the command has no options; 0: unknown */
    enum exec_output output;
    struct str cwd; /* empty: the daemon's */
    struct confine_spec sandbox;
    struct name_values env; /* added to PATH HOME LANG TZ TERM of the daemon */
    uint32_t timeout_ms, output_bytes;
    uint64_t memory_bytes, file_bytes; /* 0: unlimited */
    uint32_t cpu_s, processes;         /* 0: unlimited */
    const struct exec_exit *exits; /* exit codes with a meaning; by default 0 is a result, others refuse */
    size_t exit_count;
};

struct http_spec {
    struct str method;          /* "GET" … */
    struct str url;             /* whole, or a path if the policy names an upstream; {name} is an argument */
    struct name_values headers; /* {name} is an argument here, too */
    const struct str *query;    /* arguments that go into the query of methods with a body */
    size_t query_count;
    uint32_t timeout_ms;
    struct str pick; /* "data.items": the part of the answer that is the result; empty: all of it */
    struct str ca_file;
};

#endif
