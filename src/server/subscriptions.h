/*
 * subscriptions/listen of the modern era, and who is notified of a changed list
 * or resource. Clients of the legacy era are notified of lists once they have
 * sent initialize or asked for one.
 */
#ifndef TOOLGATE_SERVER_SUBSCRIPTIONS_H
#define TOOLGATE_SERVER_SUBSCRIPTIONS_H

#include "server/server_internal.h"

#define SUBSCRIPTIONS_MAX     16u  /* of one connection */
#define WATCHED_RESOURCES_MAX 256u /* of one connection */

struct subscription;

enum list_changed { LIST_CHANGED_TOOLS, LIST_CHANGED_PROMPTS, LIST_CHANGED_RESOURCES, LIST_CHANGED_COUNT };

/* Notifies every client that wants it, in the way of its era. */
void subscriptions_changed(struct server *server, enum list_changed list);

/* A resource of this upstream has changed: likewise those that watch it. */
void subscriptions_resource_updated(struct server *server, struct str upstream, struct str uri);

/* Watches a resource. `by`: the subscription that wants it; NULL: resources/subscribe. NULL, or why not, as
 * the end of "the server 'x' …". */
const char *subscriptions_watch(struct client *client, struct subscription *by, struct str upstream,
                                struct str uri);
void subscriptions_unwatch(struct client *client, const struct subscription *by, struct str uri);

/* Notifies one client: its list of tools changed, for its session only. */
void subscriptions_client_list_changed(struct client *client);

/* Ends the subscription with this id, if there is one, without a message. */
void subscriptions_cancel(struct client *client, const struct json *id);

/* The daemon stops: each subscription gets the result that its request waits for. */
void subscriptions_end(struct client *client);

/* Frees the client's subscriptions. */
void subscriptions_clear(struct client *client);

#endif
