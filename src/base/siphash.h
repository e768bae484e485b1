/* SipHash-2-4: a short MAC, for what a client carries and must not be able to make. */
#ifndef TOOLGATE_BASE_SIPHASH_H
#define TOOLGATE_BASE_SIPHASH_H

#include "base/str.h"

#include <stdint.h>

#define SIPHASH_KEY_BYTES 16u

uint64_t siphash(const uint8_t key[SIPHASH_KEY_BYTES], struct str bytes);

#endif
