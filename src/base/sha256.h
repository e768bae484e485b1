/* SHA-256 (FIPS 180-4), where a hash must withstand somebody who chooses the text: hash.h does not. */
#ifndef TOOLGATE_BASE_SHA256_H
#define TOOLGATE_BASE_SHA256_H

#include "base/str.h"

#include <stdint.h>

#define SHA256_BYTES 32u

void sha256(struct str text, uint8_t out[SHA256_BYTES]);

#endif
