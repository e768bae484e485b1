/* The log itself is gate/'s; here is where its files are. */
#include "server/decisions.h"

#include "base/arena.h"
#include "gate/decision_log.h"
#include "server/server_internal.h"
#include "state/state_dir.h"

static struct decision_log_files files_of(struct arena *arena, const struct config *config)
{
    return (struct decision_log_files){.records = state_dir_path(arena, config, DECISIONS_FILE_NAME),
                                       .key = state_dir_path(arena, config, "decisions.key"),
                                       .beside_socket = !state_dir_is_given(config)};
}

enum err decisions_open(struct server *server, const struct config *config, struct why *why)
{
    struct arena *arena = arena_new();
    struct decision_log_files files = files_of(arena, config);
    enum err err = decision_log_new(server->loop, &config->decisions, &files, &server->gate.decisions, why);
    server_time_calls(server);
    arena_free(arena);
    return err;
}

void decisions_apply(struct server *server, const struct config *config)
{
    struct arena *arena = arena_new();
    struct decision_log_files files = files_of(arena, config);
    decision_log_configure(server->gate.decisions, &config->decisions, &files);
    server_time_calls(server);
    arena_free(arena);
}

void decisions_leave_loop(struct server *server)
{
    if (server->gate.decisions)
        decision_log_leave_loop(server->gate.decisions);
}

void decisions_close(struct server *server)
{
    decision_log_free(server->gate.decisions);
    server->gate.decisions = NULL;
}
