/* A short table that is looked through: an owner is looked for when a node begins, the largest when room is
 * short. */
#include "base/shares.h"

static struct share *share_of(struct shares *shares, uint32_t owner)
{
    struct share *unused = NULL;
    for (unsigned i = 0; i < SHARES_MAX; i++) {
        struct share *share = &shares->of[i];
        if (share->oldest && share->owner == owner)
            return share;
        if (!share->oldest && !unused)
            unused = share;
    }
    if (!unused)
        return &shares->of[SHARES_MAX - 1];
    unused->owner = owner;
    return unused;
}

static void link_newest(struct share_node *node)
{
    struct share *share = node->share;
    node->older = share->newest;
    node->newer = NULL;
    *(share->newest ? &share->newest->newer : &share->oldest) = node;
    share->newest = node;
}

static void unlink_node(struct share_node *node)
{
    struct share *share = node->share;
    *(node->older ? &node->older->newer : &share->oldest) = node->newer;
    *(node->newer ? &node->newer->older : &share->newest) = node->older;
}

void shares_add(struct shares *shares, struct share_node *node, uint32_t owner)
{
    node->share = share_of(shares, owner);
    node->bytes = 0;
    link_newest(node);
}

void shares_touch(struct share_node *node)
{
    if (!node->newer)
        return;
    unlink_node(node);
    link_newest(node);
}

void shares_resize(struct share_node *node, size_t bytes)
{
    node->share->bytes += bytes - node->bytes;
    node->bytes = bytes;
}

void shares_remove(struct share_node *node)
{
    shares_resize(node, 0);
    unlink_node(node);
}

const struct share *shares_largest(const struct shares *shares)
{
    const struct share *largest = &shares->of[0];
    for (unsigned i = 1; i < SHARES_MAX; i++)
        if (shares->of[i].bytes > largest->bytes)
            largest = &shares->of[i];
    return largest;
}
