/* Two tables by hash whose oldest entries make room. */
#include "replay/replay_sessions.h"

#include <stdlib.h>

static void *must_calloc(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    return memory;
}

void replay_sessions_init(struct replay_sessions *s, replay_session_gone *gone, void *owner)
{
    *s = (struct replay_sessions){.gone = gone, .owner = owner};
    lru_init(&s->sessions);
    lru_init(&s->open);
}

static void forget(struct replay_sessions *s, struct replay_session *session)
{
    s->gone(s->owner, session);
    lru_remove(&s->sessions, &session->node);
    free((char *)session->name.at);
    free(session);
}

void replay_sessions_clear(struct replay_sessions *s)
{
    while (s->open.oldest)
        replay_open_remove(s, (struct replay_open *)s->open.oldest);
    while (s->sessions.oldest)
        forget(s, (struct replay_session *)s->sessions.oldest);
    lru_clear(&s->sessions);
    lru_clear(&s->open);
}

struct replay_session *replay_session_of(struct replay_sessions *s, struct hash128 id, bool *is_new)
{
    struct replay_session *session = (struct replay_session *)lru_find(&s->sessions, id);
    *is_new = !session;
    if (session)
        return session;
    if (s->sessions.count == REPLAY_SESSIONS_MAX)
        forget(s, (struct replay_session *)s->sessions.oldest);
    session = must_calloc(sizeof(*session));
    session->node.id = id;
    lru_add(&s->sessions, &session->node);
    return session;
}

struct replay_open *replay_open_add(struct replay_sessions *s, struct hash128 id)
{
    struct replay_open *open = (struct replay_open *)lru_find(&s->open, id);
    if (open) /* an id that is used again: the earlier check will get no report */
        replay_open_remove(s, open);
    if (s->open.count == REPLAY_OPEN_MAX)
        replay_open_remove(s, (struct replay_open *)s->open.oldest);
    open = must_calloc(sizeof(*open));
    open->node.id = id;
    lru_add(&s->open, &open->node);
    return open;
}

struct replay_open *replay_open_find(struct replay_sessions *s, struct hash128 id)
{
    return (struct replay_open *)lru_find(&s->open, id);
}

void replay_open_remove(struct replay_sessions *s, struct replay_open *open)
{
    lru_remove(&s->open, &open->node);
    free(open);
}
