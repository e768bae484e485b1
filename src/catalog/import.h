/*
 * From what upstreams offer to tools of a generation: which of them, under
 * which names, with which policies laid over. The same offers give the same
 * names in the same order, whoever was there first.
 *
 *   search of a alone              search          the upstream's own name
 *   search of a and b              a__search, b__search
 *   search of a, and of a file,    a__search       what the operator has named stays
 *     a policy that runs it, an alias
 *   prefix = "always"              a__search
 *   a policy named a__search       a__search       as if there were a collision
 *   upstream = "a/search" in x     x               claimed: under the policy's name alone
 */
#ifndef TOOLGATE_CATALOG_IMPORT_H
#define TOOLGATE_CATALOG_IMPORT_H

#include "catalog/generation.h"

struct import;
struct map;

#define IMPORT_SEPARATOR        "__"     /* between the upstream's name and the tool's */
#define IMPORT_SOURCE_MAX_BYTES 2097152u /* of the definitions of one upstream that are taken, */
#define IMPORT_MAX_BYTES                                                                                     \
    6291456u /* of all: a line to a client has 9 MiB, and the operator's tools come too */

struct import_source {
    const struct upstream_spec *spec;
    const struct tool_list *offer; /* NULL: it has not told yet */
};

/* What a generation is built from so far, and where complaints go. All borrowed until the last step. */
struct import_request {
    struct arena *arena;
    const struct config *config;
    struct policy_set *policies;
    const struct map *taken; /* names of tools that are there already, those that come out of here included */
    const struct import_source *sources; /* in the order of config->upstreams */
    struct generation_report *report;
};

struct import *import_begin(const struct import_request *request);

/* One upstream's names, or one tool, which the caller adds at once: NULL where this step made none. False:
 * there are no more. */
bool import_step(struct import *import, struct tool **out);

/* After the last step: holds what policies say of upstreams against the configuration: one that names none
 * that is configured, or one of the wrong kind, is an error, a tool that is not offered a warning. */
void import_check_policy(const struct import *import, const struct policy *policy);

#endif
