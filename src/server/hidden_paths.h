/*
 * What no confined process reads by default: configuration, policies, the files of secrets, other users'
 * credentials, the state folder, the sockets.
 */
#ifndef TOOLGATE_SERVER_HIDDEN_PATHS_H
#define TOOLGATE_SERVER_HIDDEN_PATHS_H

#include <stddef.h>

struct config;
struct loop;

/* For the processes that start from now on. `more`: further paths. Looks for ${file:…} also in the texts of
 * the policies, since upstreams start before these are loaded. */
void hidden_paths_apply(struct loop *loop, const struct config *config, const char *const *more,
                        size_t count);

#endif
