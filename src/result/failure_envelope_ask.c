/* Explicit members, a status that says so, or several candidates beside words about them. */
#include "base/arena.h"
#include "result/failure_envelope_internal.h"
#include "json/build.h"
#include "json/write.h"

static const struct str asking[] = {STR("needuserinput"),
                                    STR("needsuserinput"),
                                    STR("requiresuserinput"),
                                    STR("userinputrequired"),
                                    STR("inputrequired"),
                                    STR("needsinput"),
                                    STR("requiresconfirmation"),
                                    STR("needsconfirmation"),
                                    STR("confirmationrequired"),
                                    STR("needsclarification"),
                                    STR("clarificationneeded"),
                                    STR("requiresclarification"),
                                    STR("ambiguous")};
/* Nothing but an envelope is called so. */
static const struct str plain[] = {STR("needuserinput"), STR("needsuserinput"), STR("requiresuserinput"),
                                   STR("userinputrequired")};
static const struct str listing[] = {STR("candidates"), STR("choices"), STR("options"), STR("matches"),
                                     STR("alternatives")};
static const struct str wording[] = {STR("question"), STR("prompt"),      STR("message"), STR("msg"),
                                     STR("detail"),   STR("description"), STR("reason"),  STR("error")};

static struct str question_in(const struct json *object)
{
    const struct json *words = FIND(object, wording);
    if (json_is(words, JSON_OBJECT))
        words = FIND(words, wording);
    return str_cut(json_str(words), ENVELOPE_QUESTION_BYTES);
}

static void take_choices(struct arena *arena, struct envelope *e, const struct json *list)
{
    struct buf text = buf_in(arena);
    uint32_t count = 0;
    while (count < list->len && count < ENVELOPE_CHOICES_MAX) {
        json_write(&text, &list->items[count]);
        if (text.len > ENVELOPE_CHOICES_BYTES)
            break;
        count++;
    }
    e->choices_left_out = list->len - count;
    if (!count)
        return;
    struct json *choices = ARENA_NEW(arena, struct json);
    *choices = count == list->len ? *list : json_array(list->items, count);
    e->choices = choices;
}

/* A flag or a status is a question only beside the words of one: things have states, too. */
static bool is_worded(const struct json *object)
{
    static const struct str words[] = {STR("question"), STR("prompt"), STR("message"), STR("msg"),
                                       STR("error")};
    return !json_get_text(object, "id") && (FIND(object, words) || FIND(object, listing));
}

/* {"need_user_input": true | "What for?" | {question, choices}}, or a status that says so. */
static const struct json *asking_in(const struct json *object, const char **code)
{
    static const struct str status[] = {STR("status"), STR("coverage"), STR("errorclass"), STR("type"),
                                        STR("code")};
    for (uint32_t i = 0; i < object->len; i++) {
        const struct json_member *m = &object->members[i];
        char text[ENVELOPE_NAME_MAX_BYTES];
        bool is_status = IS_ONE_OF(m->key, status) && IS_ONE_OF(json_str(&m->value), asking);
        bool is_flag = json_is_true(&m->value);
        if (!is_status && (!IS_ONE_OF(m->key, asking) || envelope_is_no_error(&m->value)))
            continue;
        bool holds_words = json_is(&m->value, JSON_OBJECT) || (!is_status && json_str(&m->value).len);
        if (!holds_words && !((is_status || is_flag) && is_worded(object)) &&
            !(is_flag && IS_ONE_OF(m->key, plain)))
            continue;
        bool ambiguous = str_is(envelope_name(is_status ? json_str(&m->value) : m->key, text), "ambiguous");
        *code = ambiguous ? "ambiguous" : "user_input";
        return &m->value;
    }
    return NULL;
}

static bool names_several(struct str text)
{
    static const char *const said[] = {"ambiguous", "multiple matches", "more than one", "several matches"};
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
        if (str_contains_nocase(text, str_of(said[i])))
            return true;
    return false;
}

bool envelope_read_question(struct arena *arena, const struct json *object, struct envelope *e)
{
    const char *code;
    const struct json *said = asking_in(object, &code), *list = FIND(object, listing);
    if (!said && json_is(list, JSON_ARRAY) && names_several(question_in(object))) {
        said = object;
        code = "ambiguous";
    }
    if (!said)
        return false;
    *e = (struct envelope){.kind = ENVELOPE_NEEDS_INPUT, .code = code, .after_s = -1};
    bool inside = json_is(said, JSON_OBJECT), is_sentence = !inside && !IS_ONE_OF(json_str(said), asking);
    e->question = inside        ? question_in(said)
                  : is_sentence ? str_cut(json_str(said), ENVELOPE_QUESTION_BYTES)
                                : STR_NONE;
    if (!e->question.len)
        e->question = question_in(object);
    const struct json *own = inside ? FIND(said, listing) : NULL;
    if (json_is(own ? own : list, JSON_ARRAY))
        take_choices(arena, e, own ? own : list);
    return true;
}
