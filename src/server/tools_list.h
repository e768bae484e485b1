/*
 * What a list of tools depends on, asked of the ledger before it is written:
 * the goal that a turn told, and whether the session is stuck. Where no hook
 * looks at that, the list is written at once.
 */
#ifndef TOOLGATE_SERVER_TOOLS_LIST_H
#define TOOLGATE_SERVER_TOOLS_LIST_H

#include "catalog/catalog.h"
#include "server/request.h"

/* Writes the whole reply; fires at once, or later when the ledger has answered. */
typedef enum request_status tools_list_writer(struct request *r, const struct catalog_request *wanted);

/* `wanted` is copied; what it points to lives as long as the request. */
enum request_status tools_list_begin(struct request *r, const struct catalog_request *wanted,
                                     tools_list_writer *tell);

#endif
