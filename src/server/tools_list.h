/*
 * What a list of tools depends on: the session's goal, and whether it is
 * stuck. Both are read from the ledger before the list is written; without
 * policies that use them the list is written at once.
 */
#ifndef TOOLGATE_SERVER_TOOLS_LIST_H
#define TOOLGATE_SERVER_TOOLS_LIST_H

#include "catalog/catalog.h"
#include "server/request.h"

/* Writes the whole reply. Fires once, inside tools_list_begin or later. */
typedef enum request_status tools_list_writer(struct request *request, const struct catalog_request *wanted);

/* Copies `wanted`; what it points to must live as long as the request. */
enum request_status tools_list_begin(struct request *request, const struct catalog_request *wanted,
                                     tools_list_writer *write);

#endif
