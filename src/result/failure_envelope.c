/* Members are looked at once, by what their names mean; each rule then is one question to what was found. */
#include "result/failure_envelope_internal.h"

/* ---- names ------------------------------------------------------------------ */

enum meaning {
    OTHER,   /* data */
    GOOD,    /* success, ok */
    BAD,     /* isError */
    STATUS,  /* status, code: a word or a number */
    ERROR,   /* error */
    ERRORS,  /* errors */
    WORDS,   /* message: what happened */
    PAYLOAD, /* data, result: where the data would be */
    ABOUT,   /* of a failure, and no data: request_id, hint, … */
    RECORD   /* of a thing that exists on its own: id, name, created_at */
};

static const struct {
    struct str name;
    enum meaning meaning;
} names[] = {
    {STR("success"), GOOD},
    {STR("ok"), GOOD},
    {STR("succeeded"), GOOD},
    {STR("successful"), GOOD},
    {STR("issuccess"), GOOD},
    {STR("iserror"), BAD},
    {STR("status"), STATUS},
    {STR("statuscode"), STATUS},
    {STR("httpstatus"), STATUS},
    {STR("httpcode"), STATUS},
    {STR("code"), STATUS},
    {STR("error"), ERROR},
    {STR("errors"), ERRORS},
    {STR("message"), WORDS},
    {STR("msg"), WORDS},
    {STR("errormessage"), WORDS},
    {STR("errormsg"), WORDS},
    {STR("errordescription"), WORDS},
    {STR("detail"), WORDS},
    {STR("details"), WORDS},
    {STR("reason"), WORDS},
    {STR("statusmessage"), WORDS},
    {STR("title"), ABOUT},
    {STR("data"), PAYLOAD},
    {STR("result"), PAYLOAD},
    {STR("errorcode"), ABOUT},
    {STR("errortype"), ABOUT},
    {STR("errordetails"), ABOUT},
    {STR("errno"), ABOUT},
    {STR("type"), ABOUT},
    {STR("instance"), ABOUT},
    {STR("hint"), ABOUT},
    {STR("help"), ABOUT},
    {STR("suggestion"), ABOUT},
    {STR("suggestions"), ABOUT},
    {STR("requestid"), ABOUT},
    {STR("traceid"), ABOUT},
    {STR("correlationid"), ABOUT},
    {STR("timestamp"), ABOUT},
    {STR("path"), ABOUT},
    {STR("documentationurl"), ABOUT},
    {STR("statustext"), ABOUT},
    {STR("retryafter"), ABOUT},
    {STR("retryafterms"), ABOUT},
    {STR("retryafters"), ABOUT},
    {STR("retryafterseconds"), ABOUT},
    {STR("retryable"), ABOUT},
    {STR("retryin"), ABOUT},
    {STR("exception"), ABOUT},
    {STR("extensions"), ABOUT},
    {STR("jsonrpc"), ABOUT},
    {STR("cause"), ABOUT},
    {STR("stack"), ABOUT},
    {STR("stacktrace"), ABOUT},
    {STR("traceback"), ABOUT},
    {STR("innererror"), ABOUT},
    {STR("method"), ABOUT},
    {STR("id"), RECORD},
    {STR("name"), RECORD},
    {STR("uuid"), RECORD},
    {STR("state"), RECORD},
    {STR("createdat"), RECORD},
    {STR("updatedat"), RECORD},
    {STR("startedat"), RECORD},
    {STR("finishedat"), RECORD},
    {STR("completedat"), RECORD},
    {STR("exitcode"), RECORD},
    {STR("jobid"), RECORD},
    {STR("duration"), RECORD},
    {STR("progress"), RECORD},
    {STR("date"), RECORD},
    {STR("created"), RECORD},
};

static enum meaning meaning_of(struct str key)
{
    char text[ENVELOPE_NAME_MAX_BYTES];
    struct str plain = envelope_name(key, text);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (str_eq(plain, names[i].name))
            return names[i].meaning;
    return OTHER;
}

/* ---- one look at an object -------------------------------------------------- */

struct look {
    const struct json *object;
    bool good, bad;              /* it says of itself that it went well, that it did not */
    bool status_bad, status_odd; /* "error"; another word: the state of something */
    int64_t http;                /* a number as of HTTP; 0: none */
    const struct json *error, *errors;
    struct str words;
    bool payload, record, jsonrpc; /* there is data, where data is kept; it is a thing of its own */
    unsigned scalars, containers;  /* of other members: single values, and what holds several */
    bool error_first, status_first;
};

static bool is_container(const struct json *value)
{
    return value->type == JSON_ARRAY || value->type == JSON_OBJECT;
}

static void look_at_status(struct look *look, const struct json *value, bool is_first)
{
    static const struct str bad[] = {STR("error"), STR("fail"), STR("failure")};
    static const struct str good[] = {STR("ok"),        STR("success"),   STR("successful"),
                                      STR("succeeded"), STR("completed"), STR("done")};
    int64_t n;
    struct str word = str_trim(json_str(value));
    if (json_int(value, &n) || (word.len == 3 && word.at[0] >= '4' && word.at[0] <= '5')) {
        n = value->type == JSON_NUMBER ? n : (word.at[0] - '0') * 100;
        look->http = n >= 400 && n <= 599 ? n : look->http;
        look->good = look->good || (n >= 200 && n <= 299);
    } else if (IS_ONE_OF(word, good)) {
        look->good = true;
    } else if (IS_ONE_OF(word, bad)) {
        look->status_bad = true;
        look->status_first = is_first;
    } else if (word.len) {
        look->status_odd = true;
    }
}

static void look_at_words(struct look *look, const struct json *value)
{
    if (json_str(value).len && !look->words.len)
        look->words = json_str(value);
}

static void look_at_member(struct look *look, const struct json_member *member, bool is_first)
{
    const struct json *value = &member->value;
    bool truth = json_is_true(value), untruth = json_is(value, JSON_BOOL) && !truth;
    switch (meaning_of(member->key)) {
    case GOOD:
        look->good = look->good || truth;
        look->bad = look->bad || untruth;
        return;
    case BAD:
        look->bad = look->bad || truth;
        return;
    case STATUS:
        if (str_is(member->key, "code") && !json_is(value, JSON_NUMBER))
            return; /* "NOT_FOUND": a name for the error */
        look_at_status(look, value, is_first);
        return;
    case ERROR:
        look->error = envelope_is_no_error(value) ? NULL : value;
        look->error_first = is_first;
        return;
    case ERRORS:
        look->errors = envelope_is_no_error(value) ? NULL : value;
        return;
    case WORDS:
        look_at_words(look, value);
        return;
    case PAYLOAD:
        look->payload = look->payload || !result_is_empty(value);
        return;
    case ABOUT:
        look->jsonrpc = look->jsonrpc || str_is(member->key, "jsonrpc");
        return;
    case RECORD:
        look->record = true;
        return;
    case OTHER:
        look->containers += is_container(value) && !result_is_empty(value);
        look->scalars += !is_container(value) && !result_is_empty(value);
    }
}

static struct look look_at(const struct json *object)
{
    struct look look = {.object = object};
    for (uint32_t i = 0; i < object->len; i++)
        look_at_member(&look, &object->members[i], i == 0);
    look.record = look.record && !look.jsonrpc;
    return look;
}

/* ---- failures --------------------------------------------------------------------- */

/* It speaks of nothing but the failure. */
static bool is_all_about_it(const struct look *look)
{
    return !look->record && !look->payload && !look->containers && !look->scalars;
}

static bool says_false(const struct look *look)
{
    bool explained = look->error || look->errors || look->words.len;
    return look->bad && !look->containers && (explained || is_all_about_it(look) || !look->record);
}

static bool says_status_error(const struct look *look)
{
    bool explained = look->words.len || look->error;
    bool jsend = look->object->len == 2 && look->payload;
    return look->status_bad && !look->containers && !look->record &&
           (explained ? look->status_first || is_all_about_it(look) : jsend);
}

/* A record may have an error of its own; what begins with it, or holds nothing else, is one. */
static bool says_error(const struct look *look)
{
    bool has_words =
        json_is(look->error, JSON_STRING) || json_is(look->error, JSON_OBJECT) || look->words.len;
    if (!look->error || !has_words || look->status_odd || look->record || look->payload || look->containers)
        return false;
    return !look->scalars || (look->error_first && look->object->len <= 5);
}

/* Of GraphQL and JSON:API. What has a line, a rule, a severity is what a checker found in something else. */
static bool is_error_of_a_service(const struct json *item)
{
    static const struct str known[] = {STR("message"), STR("locations"), STR("path"),   STR("extensions"),
                                       STR("code"),    STR("type"),      STR("status"), STR("title"),
                                       STR("detail"),  STR("source"),    STR("id"),     STR("links"),
                                       STR("meta")};
    if (!json_is(item, JSON_OBJECT) ||
        !(json_get_text(item, "message") || json_get_text(item, "detail") || json_get_text(item, "title")))
        return false;
    for (uint32_t i = 0; i < item->len; i++)
        if (!IS_ONE_OF(item->members[i].key, known))
            return false;
    return true;
}

static bool says_errors(const struct look *look)
{
    const struct json *data = json_get_text(look->object, "data");
    if (!json_is(look->errors, JSON_ARRAY) || !is_all_about_it(look))
        return false;
    if (json_is(data, JSON_NULL) || look->words.len)
        return true;
    for (uint32_t i = 0; i < look->errors->len; i++)
        if (!is_error_of_a_service(&look->errors->items[i]))
            return false;
    return true;
}

static bool says_http(const struct look *look)
{
    bool explained = look->error || look->words.len || json_str(json_get_text(look->object, "title")).len;
    return look->http && explained && is_all_about_it(look);
}

static const char *failure_in(const struct look *look)
{
    static const struct {
        bool (*says)(const struct look *);
        const char *code;
    } rules[] = {{says_false, "success_false"},
                 {says_status_error, "status_error"},
                 {says_error, "error_field"},
                 {says_errors, "errors_field"},
                 {says_http, "http_status"}};
    for (size_t i = 0; !look->good && i < sizeof(rules) / sizeof(*rules); i++)
        if (rules[i].says(look))
            return rules[i].code;
    return NULL;
}

/* ---- what passes -------------------------------------------------------------------- */

struct waiting {
    const char *code;
    int64_t after_s;
};

static int64_t wait_of(struct str name, const struct json *value)
{
    static const struct str waits[] = {STR("retryafter"), STR("retryafters"), STR("retryafterseconds"),
                                       STR("retryin"),    STR("retrydelay"),  STR("retryafterms")};
    int64_t n;
    double seconds;
    if (!IS_ONE_OF(name, waits))
        return -1;
    if (value->type == JSON_STRING)
        return envelope_duration(json_str(value));
    if (!json_double(value, &seconds) || !(seconds >= 0))
        return -1;
    char text[ENVELOPE_NAME_MAX_BYTES];
    if (str_is(envelope_name(name, text), "retryafterms"))
        seconds /= 1000;
    n = seconds > ENVELOPE_WAIT_MAX_S ? ENVELOPE_WAIT_MAX_S : (int64_t)seconds;
    return (double)n < seconds && n < ENVELOPE_WAIT_MAX_S ? n + 1 : n;
}

static void look_for_waiting(struct waiting *w, struct str name, const struct json *value, unsigned depth)
{
    int64_t status, wait = wait_of(name, value);
    if (wait >= 0)
        w->after_s = wait;
    if (value->type == JSON_STRING) {
        struct str text = json_str(value);
        w->code = w->code ? w->code : envelope_text_transient(text);
        w->after_s = w->after_s >= 0 ? w->after_s : envelope_text_wait(text);
    } else if (meaning_of(name) == STATUS && json_int(value, &status) && !w->code) {
        w->code = envelope_status_transient(status);
    }
    for (uint32_t i = 0; depth && is_container(value) && i < value->len && i < 32; i++) {
        bool list = value->type == JSON_ARRAY;
        look_for_waiting(w, list ? name : value->members[i].key,
                         list ? &value->items[i] : &value->members[i].value, depth - 1);
    }
}

/* ---- from outside ----------------------------------------------------------------------- */

/* Some servers put whatever a function gave under one name. */
static const struct json *inner(const struct json *value)
{
    const struct json *only =
        json_is(value, JSON_OBJECT) && value->len == 1 ? json_get_text(value, "result") : NULL;
    return only ? only : value;
}

static bool is_text_alone(const struct result *result)
{
    for (uint32_t i = 0; json_is(result->content, JSON_ARRAY) && i < result->content->len; i++)
        if (!str_is(json_str(json_get_text(&result->content->items[i], "type")), "text"))
            return false;
    return true;
}

static struct str text_in(const struct result *result, const struct json *value)
{
    return result->as_text ? json_str(json_get_text(result->value, "text")) : json_str(value);
}

static struct envelope passes_or_fails(struct waiting waiting, const char *code)
{
    if (waiting.code)
        return (struct envelope){
            .kind = ENVELOPE_TRANSIENT, .code = waiting.code, .after_s = waiting.after_s};
    return (struct envelope){.kind = ENVELOPE_FAILED, .code = code, .after_s = -1};
}

struct envelope envelope_of_message(struct str message)
{
    if (envelope_text_asks(message))
        return (struct envelope){.kind = ENVELOPE_NEEDS_INPUT,
                                 .code = "ambiguous",
                                 .after_s = -1,
                                 .question = str_cut(message, ENVELOPE_QUESTION_BYTES)};
    return passes_or_fails((struct waiting){envelope_text_transient(message), envelope_text_wait(message)},
                           NULL);
}

static struct envelope of_object(struct arena *arena, const struct json *object, bool is_error)
{
    struct envelope e = {.kind = ENVELOPE_NONE, .after_s = -1};
    if (object->len > ENVELOPE_MEMBERS_MAX && !is_error)
        return e;
    if (envelope_read_question(arena, object, &e))
        return e;
    struct look look = look_at(object);
    const char *code = failure_in(&look);
    struct waiting waiting = {NULL, -1};
    if (!code && !is_error)
        return e;
    look_for_waiting(&waiting, STR_NONE, object, ENVELOPE_DEPTH);
    return passes_or_fails(waiting, code);
}

struct envelope envelope_detect(struct arena *arena, const struct result *result)
{
    const struct json *value = inner(result->value);
    struct envelope e = {.kind = ENVELOPE_NONE, .after_s = -1};
    if (!value || !is_text_alone(result))
        return e;
    struct str text = text_in(result, value);
    if (!text.len)
        return json_is(value, JSON_OBJECT) ? of_object(arena, value, false) : e;
    const char *code = envelope_text_failure(text);
    if (!code && !envelope_text_asks(text))
        return e;
    e = envelope_of_message(text);
    e.code = e.code ? e.code : code;
    return e;
}

struct envelope envelope_of_error(struct arena *arena, const struct result *result)
{
    const struct json *value = inner(result->value);
    struct str text = value ? text_in(result, value) : result->error_text;
    if (!text.len && json_is(value, JSON_OBJECT))
        return of_object(arena, value, true);
    return envelope_of_message(text.len ? text : result->error_text);
}
