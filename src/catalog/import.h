/*
 * Turns the tool lists of upstreams into tools of a generation: which of them, under which names, with which
 * policies. The same lists give the same names, independent of the order in which the upstreams answered.
 *
 *   only a has search              search                the upstream's own name
 *   a and b have search            a__search, b__search
 *   a has search, and so does a tools
 *     file, a policy with a tool of
 *     its own, or an alias         a__search             the operator's name stays
 *   prefix = "always"              a__search
 *   a policy named a__search       a__search
 *   upstream = "a/search" in x     x                     the policy claims the tool
 *   b has a__search                (left out)            the name belongs to a
 */
#ifndef TOOLGATE_CATALOG_IMPORT_H
#define TOOLGATE_CATALOG_IMPORT_H

#include "catalog/generation.h"

struct import;
struct map;
struct pins_review;

#define IMPORT_SEPARATOR        "__"     /* between the upstream's name and the tool's */
#define IMPORT_SOURCE_MAX_BYTES 2097152u /* definitions of one upstream */
#define IMPORT_MAX_BYTES        6291456u /* of all: a line to a client has 9 MiB, for the operator's tools too */

/* Everything is borrowed as long as the import is used. */
struct import_request {
    struct arena *arena;
    const struct config *config;
    struct policy_set *policies;
    const struct map *by_name; /* all tools so far; the caller adds those that import_step returns */
    struct tool_list *const *tool_lists; /* one per config->upstreams; NULL entries: not listed yet */
    struct generation_report *report;
    const struct generation *generation; /* whose guarded tools say which upstream a policy is for */
    struct pins_review *pins;            /* what it holds is imported as it was accepted; NULL: no pins */
};

/* A name such as files__search tells models and policies whose tool (or prompt) it is: no other upstream than
 * `files` may have it. The longest name counts, so that a__b keeps a__b__find beside an upstream `a`. NULL:
 * no upstream's. */
const struct upstream_spec *import_owner_of_name(const struct config *config, struct str name);

struct import *import_begin(const struct import_request *request);

/* Handles one policy's names, one upstream's names, or one tool. `*out` is the tool that the caller must add,
 * or NULL. False: there is nothing left. */
bool import_step(struct import *import, struct tool **out);

/* After the last step: reports an error if the policy's upstream is not configured or of the wrong kind. */
void import_check_policy(const struct import *import, const struct policy *policy);

/* Policies that guard no tool: their tool is not known, or no name in their `tools` matches one. A guard that
 * guards nothing must not look like one that does: a misspelled name is an error of the load; a policy whose
 * server has yet to list its tools waits; what its server no longer offers is a fault of the generation. */
struct unmatched;

/* After all tools are added. `tools_changed`: only an upstream's list has changed, and a load that the
 * operator has not asked for must not fail: misspelled names are faults, too. Everything is borrowed. */
struct unmatched *unmatched_begin(struct generation *generation, bool tools_changed,
                                  struct generation_report *report);

/* Whether an upstream has yet to list its tools. */
bool unmatched_waits(const struct unmatched *unmatched);

/* Reports on one policy, and adds it to generation->unmatched if it is waiting or at fault. */
void unmatched_check(struct unmatched *unmatched, const struct policy *policy);

#endif
