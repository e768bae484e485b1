/*
 * Tools that one connection declared for itself (toolgate/register). They
 * exist for toolgate/… of that connection alone; after a reload they are
 * compiled anew against the new generation's policies.
 */
#ifndef TOOLGATE_CATALOG_CLIENT_TOOLS_H
#define TOOLGATE_CATALOG_CLIENT_TOOLS_H

#include "catalog/generation.h"

struct toolbox;
struct toolbox *toolbox_new(const struct peer *peer); /* whose connection it is; borrowed, outlives the box */
void toolbox_free(struct toolbox *toolbox);

#define TOOLBOX_MAX_TOOLS 512u
#define TOOLBOX_MAX_BYTES 12582912u /* compiled */

/* Copies `definition`. ERR_NOT_FOUND where the peer is granted no tool of that name, whether or not there is
 * one; ERR_EXISTS where the generation has one that toolgate itself runs. A tool registered twice is
 * replaced. */
enum err toolbox_register(struct toolbox *toolbox, struct generation *generation,
                          const struct json *definition, const struct tool **out, struct why *why);
const struct tool *toolbox_find(struct toolbox *toolbox, struct generation *generation, struct str name);
/* Frees what was replaced: to be called while no call of the connection is under way. */
void toolbox_forget_replaced(struct toolbox *toolbox);
size_t toolbox_count(const struct toolbox *toolbox);
struct str toolbox_name_at(const struct toolbox *toolbox, size_t index);

#endif
