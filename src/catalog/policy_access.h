/*
 * Who can change the policies: whoever writes to their folder or files decides
 * what agents may do, so nobody but root and the daemon's user should.
 */
#ifndef TOOLGATE_CATALOG_POLICY_ACCESS_H
#define TOOLGATE_CATALOG_POLICY_ACCESS_H

#include "catalog/generation.h"

/* Warns of a folder or files that everyone may write to, or that belong to another user, each kind once with
 * the command that corrects it. */
void policy_access_check(const struct generation *generation, struct generation_report *report);

#endif
