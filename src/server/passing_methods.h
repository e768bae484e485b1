/* Prompts, resources and completion of the servers behind the gate; its methods are in method_table.h. */
#ifndef TOOLGATE_SERVER_PASSING_METHODS_H
#define TOOLGATE_SERVER_PASSING_METHODS_H

#include "server/request.h"

#define PASSING_SETTLE_MS 20u /* from a server's list to the one for clients */

struct subscription;

/* A server has listed, or the configuration is another: clients are told what has changed, soon. */
void passing_lists_changed(struct server *server);

/* "lists":{"prompts","resources","templates","warnings"}. */
void passing_write_status(struct json_out *out, struct server *server);

/* subscriptions/listen with resourceSubscriptions: those that exist are watched; the client is told which. */
void passing_watch_all(struct request *request, struct subscription *by, const struct json *uris);

void passing_free(struct server *server);

#endif
