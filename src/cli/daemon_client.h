/* A connection to the daemon, for requests one after the other. Blocking, with a deadline. */
#ifndef TOOLGATE_CLI_DAEMON_CLIENT_H
#define TOOLGATE_CLI_DAEMON_CLIENT_H

#include "base/err.h"
#include "json/value.h"

struct arena;
struct daemon_client;

#define DAEMON_CLIENT_TIMEOUT_MS     60000u /* for one reply: a tool may be slow */
#define DAEMON_CLIENT_STATUS_MS      10000u /* for the reply to toolgate/status, which waits for nothing */
#define DAEMON_CLIENT_LINE_MAX_BYTES 134217728u /* of a reply */

/* The socket of a client that names none: the user's own daemon ($XDG_RUNTIME_DIR), else that of the system
 * (/run/toolgate) if only that exists. */
const char *daemon_client_default_socket(struct arena *arena);

/* The connected socket, or a negative enum err; `why` has the command that starts a daemon. ERR_UNAVAILABLE:
 * no process listens; ERR_CONFIG: the path is no socket of a daemon that this user may use. */
int daemon_client_socket(const char *path, struct why *why);

/* `path` NULL: the default socket. Errors as above. Close with daemon_client_close, which takes NULL. */
enum err daemon_client_connect(const char *path, struct daemon_client **out, struct why *why);
void daemon_client_close(struct daemon_client *client);

/* Readable: a line has begun to arrive. */
int daemon_client_descriptor(const struct daemon_client *client);

/* Sends a request. `params`: an object as JSON. */
enum err daemon_client_ask(struct daemon_client *client, const char *method, struct str params,
                           struct why *why);

/* Its answer; notifications that come before it are skipped. `result` lives in the arena. A JSON-RPC error is
 * ERR_PARSE with the daemon's message; ERR_CONFIG: what listens there is no daemon. */
enum err daemon_client_answer(struct daemon_client *client, struct arena *arena, struct json *result,
                              struct why *why);

/* The code of the JSON-RPC error that came last; 0: none. */
int64_t daemon_client_error_code(const struct daemon_client *client);

#endif
