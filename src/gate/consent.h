/*
 * What the user of a client has answered to the questions of check hooks (ask): the same question in the same
 * call is then satisfied, or refused as `declined`.
 */
#ifndef TOOLGATE_GATE_CONSENT_H
#define TOOLGATE_GATE_CONSENT_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define CONSENTS_MAX 8u /* questions of one call: several policies may ask, each its own */

struct arena;
struct json;
struct json_out;
struct policy_outcome;

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
