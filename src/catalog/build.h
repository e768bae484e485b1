/*
 * A generation while it is built, shared by generation.c (the phases) and import.c (those that turn the tool
 * lists of upstreams into tools: which of them, under which names, with which policies). The same lists give
 * the same names, independent of the order in which the upstreams answered.
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
#ifndef TOOLGATE_CATALOG_BUILD_H
#define TOOLGATE_CATALOG_BUILD_H

#include "catalog/generation.h"

#define IMPORT_SOURCE_MAX_BYTES 2097152u /* definitions of one upstream */
#define IMPORT_MAX_BYTES        6291456u /* of all: a line to a client has 9 MiB, for the operator's tools too */

struct generation_build {
    struct generation *g;
    struct generation_report *report;
    struct generation_build_options options;
    struct policy_set_loader *policies;
    struct policy_load_errors policy_errors;
    size_t phase;
    size_t next, next_inner; /* of the phase: file, policy, upstream or tool; and the tool of an upstream */
    size_t next_given;
    const struct json *definitions; /* of the tools file that is being read; NULL: none */
    struct str file;
    struct map *uses;             /* bare names of upstreams' tools to struct name_use */
    struct map *seen;             /* "upstream/tool" of all tools met so far */
    struct map *claims;           /* "upstream/tool" to the policy that claims it */
    size_t taken;                 /* tools of the present upstream that are published */
    size_t upstream_bytes, bytes; /* definitions of the present upstream, of all */
    struct str *names;            /* of the tools that something defines, for messages */
    size_t name_count;
    bool waits; /* an upstream has yet to list its tools */
    uint64_t hash, list_hash;
};

void generation_build_add(struct generation_build *b, struct tool *tool);

/* The phases of import.c, each in steps of one policy, upstream or tool. True: there is more to do. */
bool import_reserve_names(struct generation_build *b);
bool import_review_pins(struct generation_build *b);
bool import_count_names(struct generation_build *b);
bool import_tools(struct generation_build *b);
bool import_held(struct generation_build *b);
bool import_plain_names(struct generation_build *b);

/* After them: reports an error if the policy's upstream is not configured or of the wrong kind. */
void import_check_policy(const struct generation_build *b, const struct policy *policy);

/* Policies that guard no tool: their tool is not known, or no name in their `tools` matches one. A guard that
 * guards nothing must not look like one that does: a misspelled name is an error of the load; a policy whose
 * server has yet to list its tools waits; what its server no longer offers is a fault of the generation,
 * which adds them to generation->unmatched. If only an upstream's list has changed, misspelled names are
 * faults, too: a load that the operator has not asked for must not fail. */
void import_list_names(
    struct generation_build *b); /* once, after all tools but those of examples are added */
bool import_check_unmatched(struct generation_build *b);

/* idle_guards.c, in steps of one policy: warns of what policies name and no tool has. */
bool idle_guards_check(struct generation_build *b);

#endif
