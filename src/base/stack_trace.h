/* Stack traces in what tools say of their failures: no model can use them, and they tell of our files. */
#ifndef TOOLGATE_BASE_STACK_TRACE_H
#define TOOLGATE_BASE_STACK_TRACE_H

#include "base/str.h"

struct arena;

/* The text without the lines of a trace (Python, JavaScript, Java, Go); the very same text where it has none.
 */
struct str stack_trace_strip(struct arena *arena, struct str text);

#endif
