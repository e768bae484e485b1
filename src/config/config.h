/*
 * What the operator configured: one Lua file returning a table, every key
 * optional, unknown keys refused with the closest name. Command-line options
 * win over the file.
 */
#ifndef TOOLGATE_CONFIG_CONFIG_H
#define TOOLGATE_CONFIG_CONFIG_H

#include "base/err.h"
#include "base/log.h"
#include "config/key_table.h"
#include "policy/policy.h"
#include "upstream/upstream_spec.h"

#include <sys/types.h>

struct arena;

#define CONFIG_MESSAGE_BYTES     8388608u    /* limits.message: one line from a client */
#define CONFIG_ARGUMENTS_BYTES   1048576u    /* limits.arguments: the arguments of one call */
#define CONFIG_DEPTH             128u        /* limits.depth */
#define CONFIG_IN_FLIGHT         256u        /* limits.in_flight: calls a connection */
#define CONFIG_CONNECTIONS       4096u       /* limits.connections */
#define CONFIG_MEMORY_BYTES      1073741824u /* limits.memory: all calls together */
#define CONFIG_TURN_IDLE_S       0u          /* turn_idle_s: 0, a silence begins no turn */
#define CONFIG_ANONYMOUS_REPEATS 8u

#define CONFIG_DEFAULT_FOLDER "policies"      /* served where nobody names one and it is there */
#define CONFIG_SYSTEM_FOLDER  "/run/toolgate" /* holds the socket where XDG_RUNTIME_DIR is not set */
#define CONFIG_SOCKET_NAME    "toolgate.sock"

struct allow_rule { /* allow = { { users = {…}, groups = {…}, tools = {…} } } */
    const uid_t *uids;
    size_t uid_count;
    const gid_t *gids;
    size_t gid_count;
    bool everyone;           /* names neither users nor groups */
    const struct str *tools; /* globs; none: every tool */
    size_t tool_count;
};

struct config {
    struct arena *arena; /* owns everything below */
    const char *file;    /* NULL: none */
    uint64_t hash;       /* of what the file says; 0: none */
    const char *socket;  /* the default: $XDG_RUNTIME_DIR or /run/toolgate, /toolgate.sock */
    mode_t socket_mode;
    const struct allow_rule *allow;
    size_t allow_count;                     /* 0: everyone the socket's mode admits may call everything */
    const char *policies;                   /* folder; NULL: ./policies where it exists */
    struct files tools;                     /* files with tool definitions */
    struct files mcp_configs;               /* files with mcpServers */
    const struct upstream_spec **upstreams; /* of the file and of mcp_configs, by their names */
    size_t upstream_count;
    bool offline;               /* as the sources say */
    const struct str *warnings; /* what of mcp_configs is not heeded */
    size_t warning_count;
    bool shared_namespace;
    uint32_t ledger_ttl_s, ledger_history, ledger_timeout_ms;
    const char *ledger_redis; /* as written: secrets are filled in when it is used; NULL: the local one */
    const char *ledger_password_file;
    size_t ledger_memory; /* of the local engine, which stands in for Redis, too; 0: the ledger's default */
    unsigned ledger_on_outage; /* enum ledger_outage */
    unsigned ledger_settle;    /* 0: awaited; 1: only sent */
    /* defaults = {…}: what a policy doesn't say */
    uint32_t repair, same_call, transient, repeats, halt, across_turns, poll_max; /* POLICY_UNSET */
    enum policy_mode mode;
    enum policy_unknown unknown;
    struct coerce_options coerce;
    struct policy_limits tool_limits;    /* defaults.limits: of each tool's calls */
    struct policy_limits session_limits; /* of all calls of a session together */
    struct policy_compact compact;
    struct policy_retry again;
    bool require_descriptions;
    struct {
        uint32_t message, arguments, depth, in_flight, connections, policy_ms, policy_kb;
        size_t memory;
    } limits;
    enum log_level log_level;
    enum log_format log_format;
    bool log_arguments;
    const char *log_file; /* NULL: stderr */
    bool watch;           /* changed files are loaded without being asked */
    const char *state;    /* folder for what outlives the process; NULL: systemd's, else beside the socket */
    uint32_t turn_idle_s, anonymous_repeats;
};

/* Where settings come from, in rising order: the defaults, the file, the command line. All borrowed; a reload
 * reads them again. */
struct config_sources {
    const char *file, *socket, *policies; /* NULL: not given */
    const char *redis;                    /* --redis URL; likewise */
    const char *const *tools;             /* --tools FILE, added to the file's */
    size_t tools_count;
    const char *const *mcp_configs; /* --mcp-config FILE, likewise */
    size_t mcp_config_count;
    bool no_watch;
    bool offline; /* nothing is started: a policy may name an upstream where none is configured */
};

/* Free with config_free, also after a failure. `why` has one line for each thing that is wrong: file, key,
 * what was expected and what was found. Paths in the file are relative to the file's folder. */
enum err config_load(const struct config_sources *sources, struct config *out, struct why *why);
void config_free(struct config *config);

/* Takes what one more file says into the hash. */
struct json;
void config_hash(struct config *config, const struct json *table);

/* $XDG_RUNTIME_DIR/toolgate.sock, else /run/toolgate/toolgate.sock: where a daemon listens and a command
 * looks for it. Whether it can be made is for whoever binds it to say. */
const char *config_default_socket(struct arena *arena);

#endif
