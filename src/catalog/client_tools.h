/*
 * Tools that one connection declared for itself (toolgate/register). They
 * exist for toolgate/… of that connection alone; after a reload they are
 * compiled anew against the new generation's policies.
 */
#ifndef TOOLGATE_CATALOG_CLIENT_TOOLS_H
#define TOOLGATE_CATALOG_CLIENT_TOOLS_H

#include "catalog/generation.h"

struct client_tools;
struct client_tools *
client_tools_new(const struct peer *peer); /* whose connection it is; borrowed, outlives the box */
void client_tools_free(struct client_tools *client_tools);

#define CLIENT_TOOLS_MAX       512u
#define CLIENT_TOOLS_MAX_BYTES 12582912u /* compiled */

/* Copies `definition`. ERR_NOT_FOUND where the peer is granted no tool of that name, whether or not there is
 * one; ERR_EXISTS where the generation has one that toolgate itself runs. A tool registered twice is
 * replaced. */
enum err client_tools_register(struct client_tools *client_tools, struct generation *generation,
                               const struct json *definition, const struct tool **out, struct why *why);
const struct tool *client_tools_find(struct client_tools *client_tools, struct generation *generation,
                                     struct str name);
/* Frees what was replaced: to be called while no call of the connection is under way. */
void client_tools_free_replaced(struct client_tools *client_tools);
size_t client_tools_count(const struct client_tools *client_tools);
struct str client_tools_name_at(const struct client_tools *client_tools, size_t index);

#endif
