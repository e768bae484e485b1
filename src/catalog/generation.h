/*
 * Everything loaded together: configuration, tools, schemas, policies.
 * Built aside, its examples run, then swapped in by one pointer; immutable
 * from then on, and alive as long as a call holds it.
 */
#ifndef TOOLGATE_CATALOG_GENERATION_H
#define TOOLGATE_CATALOG_GENERATION_H

#include "catalog/tool.h"
#include "config/peer.h"

struct generation;
struct example_outcome;

/* Every complaint about what was loaded, one line each: "file:line: expected …, got …". */
struct generation_report {
    struct arena *arena;
    struct str *errors, *warnings;
    size_t error_count, warning_count;
    size_t example_count; /* examples that were run */
    void (*example_seen)(void *owner,
                         const struct example_outcome *outcome); /* hears of each; NULL after init */
    void *example_owner;
};

void generation_report_init(struct generation_report *report, struct arena *arena);
void generation_report_error(struct generation_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void generation_report_warning(struct generation_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes over `config`. On failure the report holds all errors. The examples have not run yet:
 * gate/generation_load.h, which the daemon and every command use, does that too. */
enum err generation_build(struct config *config, uint64_t number, struct generation **out,
                          struct generation_report *report);

/* Who knows what upstreams offer. Asked once for each that is configured, after the policies were read. */
struct offers {
    struct tool_list *(*of)(void *owner, struct str upstream); /* NULL: nothing yet; held for the caller */
    void *owner;
};

/* The same in steps, for a loop that has others to serve meanwhile: one file, definition or tool each. Begin,
 * step until it says false, end; an end before that gives it up. The stalls, the offers (NULL: there are
 * none) and the report are borrowed until then. */
struct building;
struct building *generation_build_begin(struct config *config, uint64_t number,
                                        const struct policy_stall *stalls, size_t stall_count,
                                        const struct offers *offers, struct generation_report *report);
bool generation_build_step(struct building *building);
enum err generation_build_end(struct building *building, struct generation **out);

struct generation *generation_ref(struct generation *generation);
void generation_unref(struct generation *generation);

const struct config *generation_config(const struct generation *generation);
struct policy_set *generation_policies(const struct generation *generation);
uint64_t generation_number(const struct generation *generation);
struct str generation_hash(const struct generation *generation);    /* 16 hex digits over all of it */
uint64_t generation_list_hash(const struct generation *generation); /* over what tools/list shows */
const struct str *generation_warnings(const struct generation *generation, size_t *count);

/* What it was built from; NULL where that upstream had told nothing yet, or is none of its configuration. */
const struct tool_list *generation_offer(const struct generation *generation, struct str upstream);

/* What is worked out of a generation as it is used, and goes with it: `drop` is called then.
 * catalog/catalog.c has the one there is. */
struct generation_cache {
    void *data; /* NULL: nothing yet */
    void (*drop)(void *data);
};
struct generation_cache *generation_cache(struct generation *generation);

/* All tools in the order of their names. */
size_t generation_tool_count(const struct generation *generation);
const struct tool *generation_tool_at(const struct generation *generation, size_t index);
/* By its name, or by one of its policy's aliases: then tool->name is another. */
const struct tool *generation_find(const struct generation *generation, struct str name);

/* The array in a file of tools: the array itself, a tools/list result, or the whole reply that held it; NULL
 * where it is none of them. */
const struct json *generation_tools_in_file(const struct json *file);

#endif
