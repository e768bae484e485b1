/*
 * What a client is told and asked. The members that the reply of a finished check, report or call has beside
 * its verdict's: each function writes into an object that the caller has opened. And the questions of check
 * hooks (ask) to the user of a client: once answered, the same question in the same call is satisfied, or
 * refused as `declined`.
 */
#ifndef TOOLGATE_GATE_CALL_REPLY_H
#define TOOLGATE_GATE_CALL_REPLY_H

#include "base/str.h"
#include "gate/call.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct json;
struct json_out;
struct policy_outcome;

/* callId, arguments, text, advice, and the stages if the request wanted a trace. */
void call_reply_check(struct json_out *out, struct call *call);

/* text, advice, content. */
void call_reply_report(struct json_out *out, const struct call *call);

/* content: the tool's result and the advice, or the feedback, as MCP content blocks of a version
 * (mcp_version.h; with STR_NONE `arena` may be NULL). `unsent`: the structured result that the client does
 * not get otherwise, as text if there is no content; NULL: none. */
void call_reply_content(struct arena *arena, struct json_out *out, const struct call *call,
                        struct str protocol, const struct json *unsent);
void call_reply_text_block(struct json_out *out, struct str text); /* nothing if `text` is empty */

#define CONSENTS_MAX 8u /* questions of one call: several policies may ask, each its own */

struct consent {
    struct str question; /* as the hook has put it */
    struct str choice;   /* that was taken; empty: none */
    bool given;          /* it was the first one, or yes */
    bool by_operator;    /* not by the user of the client itself */
};

#define CONSENT_PROPERTY       "answer" /* of the form that a client puts to its user */
#define CONSENT_CHOICES_MAX    30u      /* a question with more is put as text */
#define CONSENT_TEXT_MAX_BYTES 4096u    /* of a question in a form; a longer one is cut */

/* Whether a form can put it: `choices` is a verdict's. */
bool consent_fits_form(struct str question, const struct json *choices);
/* The params of elicitation/create, into an open object: the first of the choices lets the call proceed;
 * without any, yes does. */
void consent_write_form(struct json_out *out, struct arena *arena, struct str question,
                        const struct json *choices);
/* Reads the form's result {action, content}. False: it fits no form that was sent. */
bool consent_read(struct arena *arena, const struct json *result, const struct json *choices,
                  struct consent *consent);

/* Turns a question that was answered into a pass, or into a refusal with the code "declined". */
void consent_apply(struct arena *arena, const struct consent *consents, size_t count,
                   struct policy_outcome *outcome);

#endif
