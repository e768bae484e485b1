/*
 * The built-in tools of coding assistants, which come without policies and annotations: lua/known_tools.lua.
 */
#ifndef TOOLGATE_POLICY_KNOWN_TOOLS_H
#define TOOLGATE_POLICY_KNOWN_TOOLS_H

#include "base/str.h"

#include <stddef.h>

enum known_tool {
    KNOWN_NOT,
    KNOWN_READS,
    KNOWN_NOTES, /* a list that a model keeps for itself: nothing that another call could see changes */
    KNOWN_EDITS, /* local files, which a shell may change, too */
    KNOWN_SHELLS,
    KNOWN_KINDS
};

enum known_tool known_tools_find(struct str name);

#endif
