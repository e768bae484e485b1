/*
 * Whether a file uses pairs and ipairs as every file does: `for … in pairs(…)
 * do`. Then nothing in it can get hold of what they return, and they may step
 * through the table behind a stand-in (read_only_proxy.h) as fast as through any other.
 * Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_ITERATOR_CHECK_H
#define TOOLGATE_SANDBOX_ITERATOR_CHECK_H

#include "sandbox/bytecode.h"

/* False also where it cannot be told. */
bool iterator_check_passes(const struct bytecode_opcodes *ops, const struct bytecode *file);

#endif
