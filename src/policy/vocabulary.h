/*
 * The words of policies. Their reference is lua/policy/reference.lua. Only
 * files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_VOCABULARY_H
#define TOOLGATE_POLICY_VOCABULARY_H

#include "json/value.h"

#include <lua.h>

/* Opens the libraries and pushes the table of all words. Once per Lua state, protected. */
void vocabulary_open(lua_State *L);

/* Pushes the function of lua/policy/annotations.lua that makes a schema of comments. */
void vocabulary_push_annotations(lua_State *L);

/* The fields that a word takes: "repair", "ok", "ok.follow_up", "tool_return"; NULL for any other. */
struct word_fields {
    const char *word, *names[8]; /* NULL ends them */
};
const struct word_fields *word_fields_of(const char *word);

/* Words that are written in C. */
int word_json(lua_State *L);
int word_source_order(lua_State *L);
int word_order(lua_State *L);
int word_time(lua_State *L);
int word_day(lua_State *L);
int word_duration(lua_State *L);
int word_url(lua_State *L);
int word_host_in(lua_State *L);
int word_glob(lua_State *L);

/* An ISO 8601 time as seconds since 1970; false: the string is none. */
bool word_time_parse(struct str text, double *seconds);

/* Seconds of "PT1H30M" or "1.5h"; false: the string is no duration. */
bool word_duration_parse(struct str text, double *seconds);

/* Files that json "…" has read for a set of policies, each once. */
struct json_files {
    struct json_file {
        struct json_file *next;
        struct str path;
        struct json value;
    } * first;
    uint64_t hash; /* over all of them */
    struct arena *arena;
};

#endif
