/*
 * Every table of fields that policies meet: those that the loader reads,
 * those that words take, and those that toolgate fills in. Only files of this
 * room include this header; policy.h gives the tables to others.
 */
#ifndef TOOLGATE_POLICY_VOCABULARY_FIELD_TABLES_H
#define TOOLGATE_POLICY_VOCABULARY_FIELD_TABLES_H

#include "policy/declare/field_read.h"

/* The table called so ("repair", "ok"), or NULL. */
const struct field_table *vocabulary_table(struct str of);

#endif
