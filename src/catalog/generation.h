/*
 * A generation: everything that is loaded together (configuration, policies, tools, schemas). Built aside,
 * swapped in by one pointer, immutable from then on, and alive as long as a call references it.
 * gate/generation_load.h loads one with its examples; this header has what is loaded, and the steps in
 * between.
 */
#ifndef TOOLGATE_CATALOG_GENERATION_H
#define TOOLGATE_CATALOG_GENERATION_H

#include "base/map.h"
#include "catalog/response_schemas.h"
#include "catalog/tool.h"
#include "policy/config.h"
#include "policy/peer.h"
#include "policy/policy_set.h"

struct generation_build;
struct pins;
struct pins_review;

/* The errors and warnings of a load, one line each: "file:line: expected …, got …". */
struct generation_report {
    struct arena *arena;
    struct str *errors, *warnings;
    size_t error_count, warning_count;
    size_t example_count; /* examples that ran */
};

void generation_report_init(struct generation_report *report, struct arena *arena);
void generation_report_error(struct generation_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void generation_report_warning(struct generation_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Which upstream's tool each policy guards that names only the tool, not its upstream. Such a policy stays
 * with the upstream whose tool it guarded: when that one stops offering it and another offers a tool of the
 * same name, the other's is left out until the policy names its upstream. Who wrote the policy has not seen
 * that tool.
 */
struct guarded_tool {
    struct str policy;   /* its name, which is its tool's, too */
    struct str upstream; /* whose tool it guarded last */
    struct str moved_to; /* the upstream that offers one of this name now; empty: none */
};

/* A policy, or a name in its `tools`, that guards no tool. */
struct unmatched_policy {
    struct str file, name;
    const char *why; /* NULL: it waits for a server that has not listed its tools yet */
};

/* Everybody reads it; after the build only `hidden` and `references` change. */
struct generation {
    struct arena *arena;
    struct arena_pool *pool; /* for what tools share */
    struct config config;
    struct policy_set *policies;
    struct tool_list **tool_lists; /* one per configured upstream, referenced; NULL entries: none yet */
    struct map *by_name;           /* names and aliases to tools */
    struct tool **tools;           /* all, sorted by name */
    size_t tool_count;
    struct response_schemas schemas; /* of the operator */
    struct str hash;                 /* 16 hex digits, over everything */
    uint64_t number;
    uint64_t list_hash; /* over what tools/list shows */
    struct str *warnings;
    size_t warning_count;
    struct unmatched_policy *unmatched;
    size_t unmatched_count;
    struct guarded_tool *guarded; /* at most one per policy */
    size_t guarded_count;
    struct map *guarded_by_policy;
    struct pins_review *pins;    /* NULL: no pins are kept */
    struct hidden_cache *hidden; /* of catalog.c; NULL: none yet */
    unsigned references;
};

/* Where the tool lists of upstreams come from. `get` is called once per configured upstream, after the
 * policies are loaded; it returns a reference for the caller, or NULL if the upstream has not listed its
 * tools yet. */
struct tool_list_source {
    struct tool_list *(*get)(void *owner, struct str upstream);
    void *owner;
};

/* Definitions of tools that are in memory, not in a file. They must live as long as the generation. */
struct generation_definitions {
    struct str origin;       /* "tools.json": for messages */
    const struct json *list; /* an array */
};

/* Borrowed until the build ends. */
struct generation_build_options {
    const struct policy_stall *stalls; /* policy files that must not run */
    size_t stall_count;
    const struct tool_list_source *tool_lists;  /* NULL: no upstream runs */
    struct pins *pins;                          /* NULL: none are kept */
    const struct generation_definitions *given; /* beside the configuration's tools files */
    size_t given_count;
    const struct guarded_tool *guarded; /* of the generation before */
    size_t guarded_count;
    bool skip_broken;    /* leave out policy files and tools with errors; they are reported all the same */
    bool warns_of_rules; /* that do not fit the schema of their tool: lint reports them by itself */
    bool tools_changed;  /* only an upstream's list has changed: the load must not fail for it */
};

/* Builds a generation without running its examples. Takes over `config`; `options` may be NULL. On failure
 * `*out` is NULL and the report holds all errors. */
enum err generation_build(struct config *config, uint64_t number,
                          const struct generation_build_options *options, struct generation **out,
                          struct generation_report *report);

/* The same in steps of one file, definition or tool, for a daemon that serves between them: step until it
 * returns false, then end, which frees the build; an end before the last step gives it up. */
struct generation_build *generation_build_begin(struct config *config, uint64_t number,
                                                const struct generation_build_options *options,
                                                struct generation_report *report);
bool generation_build_step(struct generation_build *build);
enum err generation_build_end(struct generation_build *build, struct generation **out);

/* Why it serves no tool, with the fix; STR_NONE: it has tools, policies or upstreams. */
struct str generation_serves_nothing(const struct generation *generation, struct arena *arena);

static inline struct generation *generation_ref(struct generation *g)
{
    g->references++;
    return g;
}

void generation_unref(struct generation *generation); /* may be NULL */

/* The tool list that the generation was built from; NULL: the upstream had none, or is not configured. */
const struct tool_list *generation_tool_list(const struct generation *generation, struct str upstream);

/* By name or alias (then tool->name differs); NULL: unknown. */
static inline const struct tool *generation_find(const struct generation *g, struct str name)
{
    return map_get(g->by_name, name);
}

/* What it guarded last; NULL: nothing is known of it. */
struct guarded_tool *guarded_tools_find(const struct generation *generation, struct str policy);

/* The array of definitions in a tools file: the file itself, a tools/list result, or a whole reply that holds
 * one; NULL: none of these. */
const struct json *generation_tools_in_file(const struct json *file);

/* A name such as files__search tells models and policies whose tool (or prompt) it is: no other upstream than
 * `files` may have it. The longest name counts, so that a__b keeps a__b__find beside an upstream `a`. NULL:
 * no upstream's. */
#define IMPORT_SEPARATOR "__" /* between the upstream's name and the tool's */
const struct upstream_spec *import_owner_of_name(const struct config *config, struct str name);

/* ---- where mode shadow is declared ---- */

#define SHADOW_EXPIRY_DAY_MS 86400000

/* A mode "shadow" that was to end by a date, and has not. From that date on nothing is enforced that was
 * not: refusing calls overnight that no operator has reviewed does more harm than waiting, as long as status,
 * log and doctor report it. */
struct shadow_expiry {
    const struct policy *policy; /* NULL: the defaults of the configuration */
    struct str file;
    struct str sentence; /* what is wrong, and the fix; the file is not in it */
};

/* Those whose date has come at `now_ms` (since 1970); at 00:00 UTC it has. `out` lives in the arena; its
 * texts as long as both that and the generation. */
size_t shadow_expired(const struct generation *generation, int64_t now_ms, struct arena *arena,
                      struct shadow_expiry **out);

/* `toolgate shadow` names the line that ends the mode. */
struct shadow_place {
    struct str file;
    unsigned line;   /* of `mode = "shadow"`; 0: it is computed */
    bool is_default; /* of the configuration: for all tools but `tools`, whose policies declare theirs */
    const struct str *tools; /* else: those whose mode it is, perhaps beside another policy's */
    size_t tool_count;
};

/* Without those that have no tool yet. In the arena; their texts live as long as the generation. */
size_t shadow_places(const struct generation *generation, struct arena *arena, struct shadow_place **out);

#endif
