/*
 * Whether a file uses pairs and ipairs only as `for … in pairs(…) do`. Then its
 * code cannot access what they return, so they may iterate over the table
 * behind a read-only proxy directly, without a slower iterator.
 */
#ifndef TOOLGATE_SANDBOX_ITERATOR_CHECK_H
#define TOOLGATE_SANDBOX_ITERATOR_CHECK_H

#include "sandbox/bytecode.h"

/* False also if it cannot be decided. */
bool iterator_check_passes(const struct bytecode_opcodes *ops, const struct bytecode *file);

#endif
