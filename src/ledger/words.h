/*
 * The words behind the numbers that the scripts use: codes, outcomes of
 * repair chains, labels of the journal. Numbers are kept in sessions, so
 * these lists only ever grow at their end.
 */
#ifndef TOOLGATE_LEDGER_WORDS_H
#define TOOLGATE_LEDGER_WORDS_H

#include "base/str.h"

#include <stdint.h>

struct str word_code(uint8_t code);       /* empty: none, or a number of a newer version */
struct str word_outcome(uint8_t outcome); /* likewise */

struct str word_label(uint8_t label); /* "unknown" for what is not in the list */
uint8_t word_label_number(struct str label);

#endif
