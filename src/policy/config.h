/* The operator's configuration: one Lua file returning a table in which every key is optional and an unknown
 * key is an error. Command-line options override the file. */
#ifndef TOOLGATE_POLICY_CONFIG_H
#define TOOLGATE_POLICY_CONFIG_H

#include "base/err.h"
#include "base/log.h"
#include "io/http_listener.h"
#include "policy/policy.h"
#include "traces/span_exporter.h"
#include "upstream/upstream_spec.h"

#include <sys/types.h>

struct arena;
struct buf;
struct ledger;
struct loop;

#define CONFIG_MESSAGE_BYTES     8388608u /* limits.message: one line from a client */
#define CONFIG_ARGUMENTS_BYTES   1048576u /* limits.arguments: the arguments of one call */
#define CONFIG_DEPTH             128u     /* limits.depth */
#define CONFIG_IN_FLIGHT         256u     /* limits.in_flight: calls a connection */
#define CONFIG_IN_FLIGHT_FACTOR  16u   /* limits.in_flight_all: times limits.in_flight, if it is not given */
#define CONFIG_CONNECTIONS       4096u /* limits.connections */
#define CONFIG_MEMORY_BYTES      1073741824u /* limits.memory: all calls together */
#define CONFIG_TURN_IDLE_S       90u         /* turn_idle_s; 0: no pause begins a turn */
#define CONFIG_ANONYMOUS_REPEATS 8u

#define CONFIG_DEFAULT_FOLDER  "policies"      /* the default, if it exists */
#define CONFIG_SCHEMAS_FOLDER  "schemas"       /* beside the configuration, or beside the policies */
#define CONFIG_SYSTEM_FOLDER   "/run/toolgate" /* of the socket of a user without a runtime folder */
#define CONFIG_RUNTIME_FOLDERS "/run/user"     /* has each user's, where XDG_RUNTIME_DIR is not set */
#define CONFIG_SOCKET_NAME     "toolgate.sock"

struct path_list { /* that can be opened */
    const char *const *list;
    size_t count;
};

struct allow_rule { /* allow = { { users = {…}, groups = {…}, tools = {…} } } */
    const uid_t *uids;
    size_t uid_count;
    const gid_t *gids;
    size_t gid_count;
    bool everyone;                        /* names neither users nor groups */
    struct name_globs tools;              /* not given: every tool */
    struct name_globs prompts, resources; /* not given: all, unless `tools` is: then none */
};

/* Which changes of an upstream's tools take them out of service until they are accepted: catalog/pins.h. */
enum pins_mode { PINS_OFF, PINS_WARN, PINS_CHANGES, PINS_ALL };

/* What the decision log records of a call, and where. */
#define DECISIONS_FILE_MB    64u /* max_mb: of the file, and of each older one */
#define DECISIONS_SOCKET_MB  8u  /* the same beside the socket, a folder that is mostly in memory */
#define DECISIONS_KEEP       4u  /* keep: older files */
#define DECISIONS_JOURNAL    "/run/systemd/journal/socket"
#define DECISIONS_MASK_MAX   256u /* names in mask */
#define DECISIONS_MAX_MB_MAX 65536
#define DECISIONS_KEEP_MAX   1000

/* How much of a value a record has. */
enum decisions_detail { DECISIONS_NONE, DECISIONS_HASH, DECISIONS_MASKED, DECISIONS_FULL };

struct config_decisions {
    bool on;
    bool to_file;                /* false: `file = false`, only other sinks */
    const char *file;            /* NULL: in the state folder */
    const char *journald;        /* journald's socket; NULL: none */
    unsigned arguments, results; /* enum decisions_detail */
    const struct str *mask;      /* globs of the names of secret values */
    size_t mask_count;
    uint32_t max_mb; /* 0: the default of its place */
    uint32_t keep;
};

struct config {
    struct arena *arena; /* owns everything below */
    const char *file;    /* NULL: none */
    uint64_t hash;       /* of the content of the files; 0: none */
    const char *socket;  /* the default: config_default_socket */
    mode_t socket_mode;
    const char *spawner; /* the socket of `toolgate spawner`; NULL: none */
    const struct allow_rule *allow;
    size_t allow_count;                 /* 0: everyone whom the socket's mode admits may call everything */
    const struct allow_rule *operators; /* who may approve, accept and reload, beside root; NULL: the daemon's
                                           own user */
    const char *policies;               /* folder; NULL: ./policies if it exists */
    const char *schemas;                /* folder of response schemas, which may be missing; NULL: none */
    struct path_list tools;             /* files with tool definitions */
    struct path_list mcp_configs;       /* files with mcpServers */
    const struct upstream_spec **upstreams; /* of the file and of mcp_configs, by their names */
    size_t upstream_count;
    enum pins_mode pins;
    bool offline;               /* see config_sources */
    bool enforce_shadow;        /* only a replay: mode = "shadow" counts as "enforce" */
    const struct str *warnings; /* keys without effect, and ignored parts of mcp_configs */
    size_t warning_count;
    unsigned shared_namespace; /* 0: one of each uid */
    uint32_t ledger_ttl_s, ledger_history, ledger_timeout_ms;
    const char *ledger_redis; /* with its secrets not expanded; NULL: the local ledger */
    const char *ledger_password_file;
    size_t ledger_memory;                /* of the local ledger, also used during an outage; 0: the default */
    unsigned ledger_on_outage;           /* enum ledger_outage */
    unsigned ledger_settle;              /* 0: awaited; 1: only sent */
    struct policy defaults;              /* for what a policy leaves out: only its settings, no functions */
    struct policy_limits session_limits; /* of all calls of a session together */
    bool require_descriptions;
    struct {
        uint32_t message, arguments, depth, connections, policy_ms, policy_kb;
        uint32_t in_flight, in_flight_user, in_flight_all; /* calls; 0: not given */
        size_t memory;
    } limits;
    enum log_level log_level;
    enum log_format log_format;
    const char *log_file; /* NULL: stderr */
    struct config_decisions decisions;
    struct span_export traces;
    bool watch;        /* changed files are loaded automatically */
    const char *state; /* folder for persistent state; NULL: systemd's, else SOCKET.state; see complete */
    uint32_t turn_idle_s, anonymous_repeats;
    struct {
        struct http_address address; /* without text: no endpoint */
        bool page;
        const char *token_file; /* NULL: none */
    } metrics;
};

/* Calls in flight of all connections. */
static inline uint32_t config_in_flight_all(const struct config *config)
{
    uint32_t given = config->limits.in_flight_all;
    return given ? given : config->limits.in_flight * CONFIG_IN_FLIGHT_FACTOR;
}

/* Where settings come from; a later source overrides an earlier one: defaults, file, command line. All
 * borrowed; a reload reads them again. */
struct config_sources {
    const char *file, *socket, *policies; /* NULL: not given */
    const char *default_policies;         /* in place of CONFIG_DEFAULT_FOLDER; NULL: that */
    const char *redis;                    /* --redis URL; the same */
    const char *const *tools;             /* --tools FILE, added to the file's */
    size_t tools_count;
    const char *const *mcp_configs; /* --mcp-config FILE, the same */
    size_t mcp_config_count;
    uint32_t idle_s; /* --idle: the daemon ends after this time without a connection; 0: never */
    bool no_watch;
    bool offline; /* nothing is started: a policy may name an upstream that is not configured */
};

/* The defaults; config_load begins with them. */
void config_init(struct config *config);

/* Free with config_free, also after a failure. `why` has one line for each error: file, key, expected, got.
 * Paths in the file are relative to the file's folder. */
enum err config_load(const struct config_sources *sources, struct config *out, struct why *why);
void config_free(struct config *config);

/* NULL: there is none. */
const struct upstream_spec *config_find_upstream(const struct config *config, struct str name);

/* Runs a configuration file, and reads the table that it returns as JSON into *out; functions in it are
 * errors. */
enum err lua_config_read(const char *path, struct arena *arena, struct json *out, struct why *why);

/* A line for each key: "limits.depth<tab>whole number, 4 to 128<tab>128". */
void config_list_keys(struct buf *out);

/* Equal in what the sinks depend on, so that a reload need not open them again. */
bool config_decisions_same_sinks(const struct config_decisions *a, const struct config_decisions *b);

/* False: the daemon has to be restarted for the difference. */
bool config_ledger_equal(const struct config *a, const struct config *b);

/* Opens the configured ledger; `loop` is for Redis, `key_file` (ledger_options) for a local one. Secrets in
 * the address are expanded here, and no error shows them. */
enum err config_ledger_open(const struct config *config, struct loop *loop, const char *key_file,
                            struct ledger **out, struct why *why);

/* Checks the address without connecting. */
enum err config_ledger_validate(const struct config *config, struct why *why);

/* $TOOLGATE_SOCKET, else R/toolgate/toolgate.sock, R being $XDG_RUNTIME_DIR or /run/user/UID if it is this
 * user's, else /run/toolgate/toolgate.sock. */
const char *config_default_socket(struct arena *arena);

#endif
