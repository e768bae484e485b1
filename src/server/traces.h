/* The daemon's exporter of spans: adapted by each load of a configuration, flushed at the end. */
#ifndef TOOLGATE_SERVER_TRACES_H
#define TOOLGATE_SERVER_TRACES_H

struct config;
struct server;

/* At the start and after a reload. */
void traces_apply(struct server *server, const struct config *config);

/* At the end, while the loop still turns: sends what there is, for at most SPANS_FLUSH_MS. */
void traces_flush(struct server *server);
void traces_close(struct server *server);

#endif
