/* One look at the members of an object, by the role of their names; each rule then is a question to what was
 * found. */
#include "result/failure_envelope.h"

#include "base/arena.h"
#include "catalog/definition.h"
#include "json/build.h"
#include "json/write.h"

#include <stdlib.h>

#define NAME_MAX_BYTES 24u /* a longer name has no role */

enum role {
    GOOD,    /* success, ok */
    VALID,   /* valid */
    BAD,     /* isError */
    STATUS,  /* status, code: a word or a number */
    ERROR,   /* error */
    ERRORS,  /* errors */
    MESSAGE, /* message: what happened */
    OBJECT,  /* object: the type of what this is, "error" among them */
    PAYLOAD, /* data, result: where the data would be */
    ABOUT,   /* of a failure, and no data: request_id, hint, … */
    RECORD,  /* of an independent thing: id, name, created_at */
    OTHER    /* data */
};

/* Without case and separators; sorted. */
static const struct name {
    struct str name;
    enum role role;
} names[] = {
    /* clang-format off */
    {STR("cause"), ABOUT}, {STR("code"), STATUS}, {STR("completedat"), RECORD},
    {STR("correlationid"), ABOUT}, {STR("created"), RECORD}, {STR("createdat"), RECORD},
    {STR("data"), PAYLOAD}, {STR("date"), RECORD}, {STR("detail"), MESSAGE}, {STR("details"), MESSAGE},
    {STR("documentationurl"), ABOUT}, {STR("duration"), RECORD}, {STR("errno"), ABOUT},
    {STR("error"), ERROR}, {STR("errorcode"), ABOUT}, {STR("errordescription"), MESSAGE},
    {STR("errordetails"), ABOUT}, {STR("errormessage"), MESSAGE}, {STR("errormsg"), MESSAGE},
    {STR("errors"), ERRORS}, {STR("errortype"), ABOUT}, {STR("exception"), ABOUT},
    {STR("executionresult"), PAYLOAD}, {STR("exitcode"), RECORD}, {STR("extensions"), ABOUT}, {STR("finishedat"), RECORD},
    {STR("help"), ABOUT}, {STR("hint"), ABOUT}, {STR("httpcode"), STATUS}, {STR("httpstatus"), STATUS},
    {STR("id"), RECORD}, {STR("innererror"), ABOUT}, {STR("instance"), ABOUT}, {STR("iserror"), BAD},
    {STR("issuccess"), GOOD}, {STR("isvalid"), VALID}, {STR("jobid"), RECORD}, {STR("jsonrpc"), ABOUT}, {STR("message"), MESSAGE},
    {STR("method"), ABOUT}, {STR("msg"), MESSAGE}, {STR("name"), RECORD},
    {STR("object"), OBJECT}, {STR("ok"), GOOD}, {STR("output"), PAYLOAD}, {STR("path"), ABOUT},
    {STR("progress"), RECORD}, {STR("reason"), MESSAGE}, {STR("requestid"), ABOUT},
    {STR("response"), PAYLOAD}, {STR("result"), PAYLOAD}, {STR("retryable"), ABOUT}, {STR("retryafter"), ABOUT},
    {STR("retryafterms"), ABOUT}, {STR("retryafters"), ABOUT}, {STR("retryafterseconds"), ABOUT},
    {STR("retryin"), ABOUT}, {STR("stack"), ABOUT}, {STR("stacktrace"), ABOUT}, {STR("startedat"), RECORD},
    {STR("state"), RECORD}, {STR("status"), STATUS}, {STR("statuscode"), STATUS},
    {STR("statusmessage"), MESSAGE}, {STR("statustext"), ABOUT}, {STR("succeeded"), GOOD},
    {STR("success"), GOOD}, {STR("successful"), GOOD}, {STR("suggestion"), ABOUT},
    {STR("suggestions"), ABOUT}, {STR("timestamp"), ABOUT}, {STR("title"), ABOUT},
    {STR("traceback"), ABOUT}, {STR("traceid"), ABOUT}, {STR("type"), ABOUT}, {STR("updatedat"), RECORD},
    {STR("uuid"), RECORD}, {STR("valid"), VALID}, {STR("validationerrors"), ERRORS},
    /* clang-format on */
};

static int compare_name(const void *name, const void *entry)
{
    return str_cmp(*(const struct str *)name, ((const struct name *)entry)->name);
}

/* "isError", "is_error" and "is-error" are one name. */
static enum role role_of(struct str key)
{
    char plain[NAME_MAX_BYTES];
    struct str name = {plain, 0};
    for (size_t i = 0; i < key.len; i++) {
        if (key.at[i] == '_' || key.at[i] == '-' || key.at[i] == ' ')
            continue;
        if (name.len == NAME_MAX_BYTES)
            return OTHER;
        plain[name.len++] = ascii_lower(key.at[i]);
    }
    const struct name *found = bsearch(&name, names, RESULT_COUNT(names), sizeof(*names), compare_name);
    return found ? found->role : OTHER;
}

#define IS_ONE_OF(text, words) RESULT_NAME_IS(text, "_- ", words)

/* The non-empty member whose name comes first in `words`; NULL: none, or not an object. */
static const struct json *find(const struct json *object, const char *const *words, size_t count)
{
    const struct json *found = NULL;
    size_t best = count;
    for (uint32_t i = 0; json_is(object, JSON_OBJECT) && i < object->len; i++) {
        const struct json_member *member = &object->members[i];
        size_t at = result_name_index(member->key, "_- ", words, best);
        if (at == best || result_is_empty(&member->value))
            continue;
        best = at;
        found = &member->value;
    }
    return found;
}
#define FIND(object, words) find(object, words, RESULT_COUNT(words))

/* "none", false, 0 or "": the ways to write that there is no error. */
static bool is_no_error(const struct json *value)
{
    static const char *const nothing[] = {"none",  "null", "noerror", "noerrors", "no",
                                          "false", "0",    "n/a",     "ok"};
    int64_t n;
    return result_is_empty(value) || json_is_false(value) || (json_int(value, &n) && n == 0) ||
           (value->type == JSON_STRING && IS_ONE_OF(json_str(value), nothing));
}

struct look {
    const struct json *object;
    const struct envelope_call *call;
    bool good, bad, invalid;     /* it reports success, failure, {"valid": false} */
    bool is_error_object;        /* {"object": "error"} */
    bool is_error_type;          /* {"type": "error"} */
    bool status_bad, status_odd; /* "error"; another word: the state of a thing */
    int64_t http;                /* an HTTP error status; 0: none */
    const struct json *error, *errors;
    struct str message;
    bool payload, record, jsonrpc; /* has data under a payload name; is an independent thing */
    unsigned scalars, containers;  /* other members that are not empty */
    bool error_first, status_first;
};

/* A word of the tool's name ("validate" and "Form" of "validateForm") is one of these, or begins with what
 * follows a "*". */
static bool tool_has_word(const struct look *look, const char *const *words, size_t count)
{
    struct str name = look->call->tool;
    for (size_t at = 0; at < name.len;) {
        size_t from = at;
        while (at < name.len && ascii_is_letter(name.at[at]) &&
               (at == from || (name.at[at] & 32) || !(name.at[at - 1] & 32)))
            at++;
        struct str word = {name.at + from, at - from};
        at += !word.len; /* no letter */
        for (size_t i = 0; word.len && i < count; i++)
            if (words[i][0] == '*' ? str_starts_nocase(word, words[i] + 1)
                                   : !result_name_index(word, "", &words[i], 1))
                return true;
    }
    return false;
}

/* Its answer is whether something is right, so that a "no" is not its own failure. */
static bool is_checker(const struct look *look)
{
    static const char *const words[] = {"*valid", "*lint",  "*verif",  "*inspect", "*audit", "*diagnos",
                                        "check",  "checks", "checker", "test",     "tests",  "review",
                                        "parse",  "*analy", "is",      "compile"};
    return tool_has_word(look, words, RESULT_COUNT(words));
}

/* Its answer is the state of something else, which may have failed. */
static bool is_poll(const struct look *look)
{
    static const char *const words[] = {"status",   "state",  "job",   "jobs",   "poll",
                                        "*monitor", "health", "build", "builds", "deployment"};
    return tool_has_word(look, words, RESULT_COUNT(words));
}

/* A number that counts nothing, a flag that is off, or what the call itself said. */
static bool is_no_data(const struct look *look, const struct json *value)
{
    const struct json *args = look->call->arguments;
    int64_t n;
    if (result_is_empty(value) || (json_int(value, &n) && n == 0) || json_is_false(value))
        return true;
    for (uint32_t i = 0; json_is(args, JSON_OBJECT) && i < args->len && i < ENVELOPE_MEMBERS_MAX; i++)
        if (json_equal(&args->members[i].value, value))
            return true;
    return false;
}

/* It holds nothing but the failure. */
static bool is_failure_only(const struct look *look)
{
    return !look->record && !look->payload && !look->containers && !look->scalars;
}

/* Findings have a place or a weight, such as a line, a rule or a severity; a service's own errors, as of
 * GraphQL and JSON:API, do not. Texts alone are errors, unless the tool is one that looks for them. */
static bool is_errors_list(const struct look *look)
{
    static const char *const known[] = {"message", "locations", "path",  "extensions", "code",
                                        "type",    "status",    "title", "detail",     "source",
                                        "id",      "links",     "meta"};
    const struct json *data = json_get_text(look->object, "data");
    if (!json_is(look->errors, JSON_ARRAY) || !is_failure_only(look))
        return false;
    if (json_is(data, JSON_NULL) || look->message.len)
        return true;
    for (uint32_t i = 0; i < look->errors->len; i++) {
        const struct json *item = &look->errors->items[i];
        bool is_error = item->type == JSON_STRING && !is_checker(look);
        if (item->type == JSON_OBJECT)
            is_error = json_get_text(item, "message") || json_get_text(item, "detail") ||
                       json_get_text(item, "title");
        for (uint32_t k = 0; is_error && item->type == JSON_OBJECT && k < item->len; k++)
            is_error = IS_ONE_OF(item->members[k].key, known);
        if (!is_error)
            return false;
    }
    return true;
}

/* A record may have an error of its own; an object that begins with it, or holds nothing else, is one. */
static bool is_error_field(const struct look *look)
{
    struct str text = str_trim(json_str(look->error));
    bool is_measure = /* "0.05" */
        text.len && (ascii_is_digit(text.at[0]) || text.at[0] == '.' || text.at[0] == '-') && text.len < 8;
    bool explains = json_is(look->error, JSON_OBJECT) || (text.len && !is_measure);
    bool is_record = look->record || look->containers || look->payload ||
                     (look->status_bad && is_poll(look)); /* what it asked for has failed */
    return look->error && (explains || look->message.len) && !look->status_odd && !is_record &&
           (!look->scalars || (look->error_first && look->object->len <= 5));
}

/* The status of a thing is a poll's answer; another tool's own status is a failure if the object begins with
 * it, or holds nothing else. */
static bool is_status_error(const struct look *look)
{
    bool is_jsend = look->object->len == 2 && look->payload;
    bool is_told = look->message.len || look->error || look->errors;
    if (!look->status_bad || look->record || look->containers)
        return false;
    if (is_poll(look) && !look->http)
        return is_told && look->status_first &&
               str_is(json_str(json_get_text(look->object, "status")), "error");
    return is_told ? look->status_first || is_failure_only(look) : is_jsend || is_failure_only(look);
}

/* {"stdout": "", "stderr": "…", "exit_code": 2}, also with the code in `metadata`. Code 1 without any output
 * says "no": grep found nothing. */
static bool exits_badly(const struct look *look)
{
    static const char *const codes[] = {"exitcode", "returncode", "exitstatus"};
    static const char *const outputs[] = {"stdout", "stderr", "output", "aggregatedoutput"};
    const struct json *code = FIND(look->object, codes);
    int64_t n;
    bool has_output = false, prints = false;
    if (!code)
        code = FIND(json_get_text(look->object, "metadata"), codes);
    for (uint32_t i = 0; i < look->object->len; i++) {
        const struct json_member *m = &look->object->members[i];
        bool is_output = m->value.type == JSON_STRING && IS_ONE_OF(m->key, outputs);
        has_output |= is_output;
        prints |= is_output && str_trim(json_str(&m->value)).len;
    }
    return code && has_output && json_int(code, &n) && n != 0 && (n != 1 || prints) && !is_poll(look) &&
           !json_get_text(look->object, "id");
}

/* {"detail": "Not found."}: how web frameworks refuse, with nothing else in the object. */
static bool says_no(struct str message)
{
    static const char *const starts[] = {"not found",
                                         "authentication credentials",
                                         "you do not have permission",
                                         "method not allowed",
                                         "method \"",
                                         "invalid token"};
    return RESULT_BEGINNING(message, starts) || envelope_text_failure(message);
}

/* The rule that the object fails by, or NULL. */
static const char *failure_in(const struct look *look)
{
    bool is_only = is_failure_only(look), has_message = look->message.len;
    bool is_told = look->error || look->errors || has_message;
    if (exits_badly(look))
        return "exit_code";
    if (look->good)
        return NULL;
    if (look->bad && !look->containers && (is_told || is_only || !look->record))
        return "success_false";
    if (look->invalid && is_only && !is_checker(look))
        return "valid_false";
    if (is_status_error(look))
        return "status_error";
    if (look->is_error_object && !look->containers && (look->http || look->error || has_message))
        return "http_status";
    if (is_error_field(look))
        return "error_field";
    if (is_errors_list(look))
        return "errors_field";
    if (is_only && has_message && (look->is_error_type || says_no(look->message)))
        return look->is_error_type ? "error_field" : "error_text";
    bool has_title = json_str(json_get_text(look->object, "title")).len;
    return look->http && is_only && (look->error || has_message || has_title) ? "http_status" : NULL;
}

static int64_t wait_of(struct str name, const struct json *value)
{
    static const char *const waits[] = {"retryafterms", /* the first one: in milliseconds */
                                        "retryafter",   "retryafters", "retryafterseconds",
                                        "retryin",      "retrydelay"};
    size_t wait = result_name_index(name, "_- ", waits, RESULT_COUNT(waits));
    double seconds;
    if (wait == RESULT_COUNT(waits))
        return -1;
    if (value->type == JSON_STRING)
        return envelope_duration(json_str(value));
    if (!json_double(value, &seconds) || !(seconds >= 0))
        return -1;
    return envelope_wait_of(wait == 0 ? seconds / 1000 : seconds);
}

/* Into `t`: its code and the time to wait. `room`: bytes of strings that are still searched. */
static void find_transient(struct envelope *t, size_t *room, struct str name, const struct json *value,
                           unsigned depth)
{
    int64_t status, wait = wait_of(name, value);
    if (wait >= 0)
        t->after_s = wait;
    if (value->type == JSON_STRING) {
        size_t most = *room < ENVELOPE_PHRASE_BYTES ? *room : ENVELOPE_PHRASE_BYTES;
        struct str text = str_cut(json_str(value), most);
        *room -= text.len;
        t->code = t->code ? t->code : envelope_text_transient(text);
        t->after_s = t->after_s >= 0 ? t->after_s : envelope_text_wait(text);
    } else if (role_of(name) == STATUS && json_int(value, &status) && !t->code) {
        t->code = envelope_status_transient(status);
    }
    for (uint32_t i = 0; depth && i < json_child_count(value) && i < 32; i++)
        find_transient(t, room, value->type == JSON_ARRAY ? name : value->members[i].key,
                       json_child(value, i), depth - 1);
}

static const char *const input_names[] = {
    /* no data has one of these first */
    "needuserinput", "needsuserinput", "requiresuserinput", "userinputrequired",
    /* a thing may have such a state */
    "inputrequired", "needsinput", "requiresconfirmation", "needsconfirmation", "confirmationrequired",
    "needsclarification", "clarificationneeded", "requiresclarification", "ambiguous"};
#define CERTAIN_INPUT_NAMES 4u
static const char *const choice_names[] = {"candidates", "choices", "options", "matches", "alternatives"};
static const char *const question_names[] = {"question", "prompt",      "message", "msg",
                                             "detail",   "description", "reason",  "error"};

static struct str question_in(const struct json *object)
{
    const struct json *words = FIND(object, question_names);
    if (json_is(words, JSON_OBJECT))
        words = FIND(words, question_names);
    return str_cut(json_str(words), ENVELOPE_QUESTION_BYTES);
}

/* {"need_user_input": true | "What for?" | {question, choices}}, or such a status. */
static const struct json *input_request_in(const struct json *object, const char **code)
{
    static const char *const status[] = {"status", "coverage", "errorclass", "type", "code"};
    static const char *const beside[] = {"question", "prompt", "message", "msg", "error"};
    static const char *const ambiguous[] = {"ambiguous"};
    for (uint32_t i = 0; i < object->len; i++) {
        const struct json_member *m = &object->members[i];
        struct str text = json_str(&m->value);
        bool is_status = text.len && IS_ONE_OF(m->key, status) && IS_ONE_OF(text, input_names);
        bool is_flag = json_is_true(&m->value);
        if (!is_status && (!IS_ONE_OF(m->key, input_names) || is_no_error(&m->value)))
            continue;
        /* A flag or a status asks only beside a question or choices: things have states, too. */
        if (json_is(&m->value, JSON_OBJECT) || (!is_status && text.len) ||
            (is_flag &&
             result_name_index(m->key, "_- ", input_names, CERTAIN_INPUT_NAMES) < CERTAIN_INPUT_NAMES) ||
            ((is_status || is_flag) && !json_get_text(object, "id") &&
             (FIND(object, beside) || FIND(object, choice_names)))) {
            *code = IS_ONE_OF(is_status ? text : m->key, ambiguous) ? "ambiguous" : "user_input";
            return &m->value;
        }
    }
    return NULL;
}

/* Whether the object asks something of the user; fills `e` in. */
static bool read_question(struct arena *arena, const struct json *object, struct envelope *e)
{
    static const char *const several[] = {"ambiguous", "multiple matches", "more than one",
                                          "several matches"};
    const char *code;
    const struct json *request = input_request_in(object, &code), *list = FIND(object, choice_names);
    if (!request && json_is(list, JSON_ARRAY) && RESULT_HAS(question_in(object), several)) {
        request = object;
        code = "ambiguous";
    }
    if (!request)
        return false;
    *e = (struct envelope){.kind = ENVELOPE_NEEDS_INPUT, .code = code, .after_s = -1};
    bool inside = json_is(request, JSON_OBJECT),
         is_sentence = !inside && !IS_ONE_OF(json_str(request), input_names);
    e->question = inside        ? question_in(request)
                  : is_sentence ? str_cut(json_str(request), ENVELOPE_QUESTION_BYTES)
                                : STR_NONE;
    if (!e->question.len)
        e->question = question_in(object);
    const struct json *own = inside ? FIND(request, choice_names) : NULL;
    list = own ? own : list;
    if (json_is(list, JSON_ARRAY)) {
        struct buf text = buf_in(arena);
        uint32_t count = 0;
        while (count < list->len && count < ENVELOPE_CHOICES_MAX) {
            json_write(&text, &list->items[count]);
            if (text.len > ENVELOPE_CHOICES_BYTES)
                break;
            count++;
        }
        e->choices_left_out = list->len - count;
        if (count)
            e->choices = json_keep(arena, count == list->len ? *list : json_array(list->items, count));
    }
    return true;
}

/* The value to judge: some servers wrap every return value as {"result": …}. *text: the value as text, if it
 * is one. */
static const struct json *unwrap(struct arena *arena, const struct result *result, struct str *text)
{
    const struct json *value = result->value, *parsed;
    const struct json *only =
        json_is(value, JSON_OBJECT) && value->len == 1 ? json_get_text(value, "result") : NULL;
    value = only ? only : value;
    *text = result->as_text ? result_plain_text(result) : json_str(value);
    if (only && (parsed = result_json_of_text(arena, *text))) {
        value = parsed;
        *text = STR_NONE;
    }
    struct str trimmed = str_trim(*text); /* a text as a JSON string: "Error: …" with its quotes */
    if (trimmed.len > 2 && trimmed.at[0] == '"' && trimmed.at[trimmed.len - 1] == '"')
        *text = (struct str){trimmed.at + 1, trimmed.len - 2};
    return value;
}

/* `code`: of a failure that is not transient. */
static struct envelope transient_or_failed(struct envelope t, const char *code)
{
    if (t.code)
        t.kind = ENVELOPE_TRANSIENT;
    else
        t = (struct envelope){.kind = ENVELOPE_FAILED, .code = code, .after_s = -1};
    return t;
}

struct envelope envelope_of_message(struct str message)
{
    if (envelope_text_asks(message))
        return (struct envelope){.kind = ENVELOPE_NEEDS_INPUT,
                                 .code = "ambiguous",
                                 .after_s = -1,
                                 .question = str_cut(message, ENVELOPE_QUESTION_BYTES)};
    return transient_or_failed(
        (struct envelope){.code = envelope_text_transient(message), .after_s = envelope_text_wait(message)},
        NULL);
}

/* The one member that holds the data, beside members that hold no data: {"result": {…}, "tool": "x"}. */
static const struct json *wrapped_in(struct arena *arena, const struct look *look, struct str *text)
{
    static const char *const wrappers[] = {"executionresult", "result", "data", "response", "output"};
    const struct json *inner = NULL;
    if (look->record || look->containers || look->scalars > 1)
        return NULL;
    for (uint32_t i = 0; i < look->object->len; i++) {
        const struct json_member *member = &look->object->members[i];
        if (!IS_ONE_OF(member->key, wrappers) || result_is_empty(&member->value))
            continue;
        if (inner)
            return NULL;
        inner = &member->value;
    }
    *text = json_str(inner);
    const struct json *parsed = text->len ? result_json_of_text(arena, *text) : NULL;
    return parsed ? parsed : inner;
}

static void look_at_member(struct look *look, const struct json_member *member, bool is_first)
{
    const struct json *value = &member->value;
    static const char *const error_words[] = {"error", "apierror"};
    bool truth = json_is_true(value), untruth = json_is_false(value);
    switch (role_of(member->key)) {
    case GOOD:
        look->good = look->good || truth;
        look->bad = look->bad || untruth;
        return;
    case VALID:
        look->invalid = look->invalid || untruth;
        return;
    case OBJECT:
        look->is_error_object = IS_ONE_OF(json_str(value), error_words);
        look->record = look->record || !look->is_error_object;
        return;
    case BAD:
        look->bad = look->bad || truth;
        return;
    case STATUS: {
        if (str_is(member->key, "code") && !json_is(value, JSON_NUMBER))
            return; /* "NOT_FOUND": a name for the error */
        static const char *const bad[] = {"error", "fail", "failed", "failure"};
        static const char *const good[] = {"ok", "success", "successful", "succeeded", "completed", "done"};
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
        return;
    }
    case ERROR:
        look->error = is_no_error(value) ? NULL : value;
        look->error_first = is_first;
        return;
    case ERRORS:
        look->errors = is_no_error(value) ? NULL : value;
        return;
    case MESSAGE:
        if (!look->message.len)
            look->message = json_str(value);
        return;
    case PAYLOAD:
        look->payload = look->payload || !result_is_empty(value);
        return;
    case ABOUT:
        look->jsonrpc = look->jsonrpc || str_is(member->key, "jsonrpc");
        look->is_error_type |= str_is(member->key, "type") && IS_ONE_OF(json_str(value), error_words);
        return;
    case RECORD:
        look->record = true;
        return;
    case OTHER:
        look->containers += value->type >= JSON_ARRAY && !is_no_data(look, value);
        look->scalars += value->type < JSON_ARRAY && !is_no_data(look, value);
    }
}

static void look_at(struct look *look, const struct json *object, const struct envelope_call *call)
{
    *look = (struct look){.object = object, .call = call};
    for (uint32_t i = 0; i < object->len; i++)
        look_at_member(look, &object->members[i], i == 0);
    look->record = look->record && !look->jsonrpc;
}

static struct envelope of_object(struct arena *arena, const struct json *object,
                                 const struct envelope_call *call, bool is_error)
{
    struct envelope e = {.kind = ENVELOPE_NONE, .after_s = -1};
    if (object->len > ENVELOPE_MEMBERS_MAX && !is_error)
        return e;
    if (read_question(arena, object, &e))
        return e;
    struct look look;
    struct str text = STR_NONE;
    look_at(&look, object, call);
    const char *code = failure_in(&look); /* the rule that it fails by, itself or by what it wraps */
    const struct json *inner = code || look.good ? NULL : wrapped_in(arena, &look, &text);
    if (json_is(inner, JSON_OBJECT) && inner->len <= ENVELOPE_MEMBERS_MAX) {
        look_at(&look, inner, call);
        code = failure_in(&look);
    } else if (json_is(inner, JSON_STRING)) {
        code = envelope_text_failure(text);
    }
    if (!code && !is_error)
        return e;
    size_t room = ENVELOPE_SEARCHED_BYTES;
    find_transient(&e, &room, STR_NONE, object, ENVELOPE_DEPTH);
    return transient_or_failed(e, code);
}

struct envelope envelope_detect(struct arena *arena, const struct result *result,
                                const struct envelope_call *call)
{
    struct str text;
    struct envelope e = {.kind = ENVELOPE_NONE, .after_s = -1};
    for (uint32_t i = 0; json_is(result->content, JSON_ARRAY) && i < result->content->len; i++)
        if (!str_is(json_str(json_get_text(&result->content->items[i], "type")), "text"))
            return e;
    const struct json *value = unwrap(arena, result, &text);
    if (!value)
        return e;
    if (!text.len)
        return json_is(value, JSON_OBJECT) ? of_object(arena, value, call, false) : e;
    const char *code = envelope_text_failure(text);
    if (effects_guess(call->tool) != EFFECTS_READ && envelope_text_exit(text)) /* a file may end so, too */
        return (struct envelope){.kind = ENVELOPE_FAILED, .code = "exit_code", .after_s = -1};
    if (!code && !envelope_text_asks(text))
        return e;
    e = envelope_of_message(text);
    e.code = e.code ? e.code : code;
    return e;
}

struct envelope envelope_of_error(struct arena *arena, const struct result *result)
{
    static const struct envelope_call unknown;
    struct str text;
    const struct json *value = unwrap(arena, result, &text);
    if (!text.len && json_is(value, JSON_OBJECT)) {
        struct envelope e = of_object(arena, value, &unknown, true);
        if (e.code || !result->structured)
            return e;
    } /* structured content that says nothing of the failure stands beside the words that do */
    return envelope_of_message(text.len ? text : result->error_text);
}
