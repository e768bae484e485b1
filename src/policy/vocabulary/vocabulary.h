/*
 * The words of policies: one table registers each with its signature and a
 * sentence; the environment of policies and the reference in the docs are
 * both made from it. Only files of this room include this header; policy.h
 * gives the table to others.
 */
#ifndef TOOLGATE_POLICY_VOCABULARY_VOCABULARY_H
#define TOOLGATE_POLICY_VOCABULARY_VOCABULARY_H

#include "json/value.h"

#include <lua.h>

/* Opens the libraries, pushes the table of all words. Runs once a state, protected. */
void vocabulary_open(lua_State *L);

/* Pushes the function of lua/policy/annotations.lua that makes a schema of comments. */
void vocabulary_push_annotations(lua_State *L);

/* Native parts of words, in files of their own. */
int word_json(lua_State *L);                            /* word_json.c */
int word_time(lua_State *L);                            /* word_time.c */
bool word_time_parse(struct str text, double *seconds); /* false: it is no time */
int word_source_order(lua_State *L);                    /* word_field_order.c */
int word_order(lua_State *L);
int word_day(lua_State *L);
int word_duration(lua_State *L);
int word_url(lua_State *L); /* word_url.c */
int word_host_in(lua_State *L);
int word_glob(lua_State *L);

/* Files that json "…" has read for a set of policies: each is read once, so that its policies agree on it. */
struct json_files {
    struct json_file {
        struct json_file *next;
        struct str path;
        struct json value;
    } * first;
    uint64_t hash;       /* over all of them */
    struct arena *arena; /* theirs */
};

void word_json_release(lua_State *L);  /* after a file was read: its json "…" tables and templates */
void word_order_release(lua_State *L); /* templates of a file that has been read; part of word_json_release */

#endif
