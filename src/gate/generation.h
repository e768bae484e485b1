/*
 * Everything loaded together: configuration, tools, schemas, policies.
 * Built aside, its examples run, then swapped in by one pointer; immutable
 * from then on, and alive as long as a call holds it.
 */
#ifndef TOOLGATE_GATE_GENERATION_H
#define TOOLGATE_GATE_GENERATION_H

#include "gate/tool.h"
#include "gate/peer.h"

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

/* Takes over `config` on success (and only then). Runs every example. On failure the report holds all errors.
 */
enum err generation_build(struct config *config, uint64_t number, struct generation **out,
                          struct generation_report *report);
/* The same from the start: reads the configuration first. What the daemon and every command do. */
enum err generation_load(const struct config_sources *sources, uint64_t number, struct generation **out,
                         struct generation_report *report);
struct generation *generation_ref(struct generation *generation);
void generation_unref(struct generation *generation);

const struct config *generation_config(const struct generation *generation);
struct policies *generation_policies(const struct generation *generation);
uint64_t generation_number(const struct generation *generation);
struct str generation_hash(const struct generation *generation);    /* 16 hex digits over all of it */
uint64_t generation_list_hash(const struct generation *generation); /* over what tools/list shows */
const struct str *generation_warnings(const struct generation *generation, size_t *count);

/* All tools in the order of their names. */
size_t generation_tool_count(const struct generation *generation);
const struct tool *generation_tool_at(const struct generation *generation, size_t index);
const struct tool *generation_find(const struct generation *generation, struct str name);

/*
 * Tools that one connection declared for itself (toolgate/register). They
 * exist for toolgate/… of that connection alone; after a reload they are
 * compiled anew against the new generation's policies.
 */
struct toolbox;
struct toolbox *toolbox_new(void);
void toolbox_free(struct toolbox *toolbox);

#define TOOLBOX_MAX_TOOLS 512u
#define TOOLBOX_MAX_BYTES 4194304u

/* Copies `definition`. ERR_EXISTS where the generation has a tool of that name that toolgate itself runs. A
 * tool registered twice is replaced. */
enum err toolbox_register(struct toolbox *toolbox, struct generation *generation,
                          const struct json *definition, const struct tool **out, struct why *why);
const struct tool *toolbox_find(struct toolbox *toolbox, struct generation *generation, struct str name);
size_t toolbox_count(const struct toolbox *toolbox);
struct str toolbox_name_at(const struct toolbox *toolbox, size_t index);

#endif
