/* The fields of policies as rows: of a tool, of a policy for several tools, of a gateway and of their inner
 * tables. Those marked IN_DEFAULTS may also stand in `defaults` of the configuration, which are a struct
 * policy, too. Adding a field adds a row here and a member of struct policy. */
#include "policy/declare.h"
#include "base/arena.h"
#include "base/suggest.h"
#include "base/date.h"
#include "json/build.h"

#include <stdlib.h>

#define IDS_MAX 256u

#define AT(member)    .offset = offsetof(struct policy, member)
#define GIVEN(member) .given = offsetof(struct policy, member) + 1
/* A table of further rows; `example`: what is expected instead of anything else. */
#define INNER(inner, example) .table = &(inner), .expected = (example)
#define HOOK(number)          .read = read_hook, .first = (number)

const struct policy_limits policy_limits_unset = {
    .calls_per_turn = POLICY_UNSET,
    .calls_per_session = POLICY_UNSET,
    .seconds_per_turn = POLICY_UNSET,
    .cost_per_turn = POLICY_COST_UNSET,
    .cost_per_session = POLICY_COST_UNSET,
};

void policy_init(struct policy *p)
{
    p->validate = true;
    p->envelopes = true;
    p->coerce = coerce_options_all;
    p->repair = p->same_call = p->transient = POLICY_UNSET;
    p->repeats = p->halt = p->across_turns = p->poll_max = POLICY_UNSET;
    p->limits = policy_limits_unset;
    p->cost = POLICY_COST_UNSET;
}

struct policy *declare_blank(struct policy_set *set, struct str name, struct str file)
{
    struct policy *p = ARENA_NEW(set->arena, struct policy);
    policy_init(p);
    p->name = name;
    p->file = file;
    p->set = set;
    p->code = ARENA_NEW(set->arena, struct policy_code);
    for (int i = 0; i < HOOK_COUNT; i++)
        p->code->hooks[i] = HOOK_NONE;
    return p;
}

/* ---- retry, loop, limits --------------------------------------------------- */

#define SHORT EXPECTED("a duration as \"200ms\", \"5s\" or in seconds, from a millisecond to a minute")

#define AGAIN(member) .offset = offsetof(struct policy_retry, member)
static const struct field again_fields[] = {
    {"times", FIELD_WHOLE, "2", "integer", "How many more tries after the first, at most 5. Default 2.",
     AGAIN(times), RANGE(1, POLICY_RETRY_TIMES_MAX)},
    {"backoff", FIELD_DURATION, "\"200ms\"", "string|number",
     "The pause before the second try; it doubles with each try and varies at random by a quarter. Default "
     "200 ms.",
     AGAIN(backoff_ms), RANGE(1, POLICY_RETRY_WITHIN_MAX_S * 1000), SHORT},
    {"within", FIELD_DURATION, "\"5s\"", "string|number",
     "No further try begins later than this after the first one began; at most a minute. Default 5 s.",
     AGAIN(within_ms), RANGE(1, POLICY_RETRY_WITHIN_MAX_S * 1000), SHORT},
};

const struct field_table declare_again_table = FIELD_TABLE_OF(
    "retry.again", "toolgate.Again",
    "How often toolgate itself repeats a call after a transient failure, before the model sees it.",
    again_fields);

/* again = true, or again = { times = 2, backoff = "200ms", within = "5s" } */
static void finish_again(void *into, enum field_form form)
{
    struct policy_retry *r = into;
    *r = (struct policy_retry){.times = r->times ? r->times : POLICY_RETRY_TIMES,
                               .backoff_ms = r->backoff_ms ? r->backoff_ms : POLICY_RETRY_BACKOFF_MS,
                               .within_ms = r->within_ms ? r->within_ms : POLICY_RETRY_WITHIN_MS};
    if (form == FORM_FALSE)
        r->times = 0;
}

static const struct field retry_fields[] = {
    {"repair", FIELD_COUNT, "2", NULL, "How often in a row the model may correct its arguments. Default 2.",
     AT(repair)},
    {"same_call", FIELD_COUNT, "3", NULL,
     "How often the same call may run in a turn. Default by effects: 3, read 5, write 2, destructive 1.",
     AT(same_call), LEAST(1)},
    {"transient", FIELD_COUNT, "3", NULL,
     "How often the model may repeat a call that failed with a transient error. Default 3.", AT(transient)},
    {"again", FIELD_TABLE, "true  or  { times = 2, backoff = \"200ms\", within = \"5s\" }",
     "boolean|toolgate.Again",
     "toolgate repeats a failed call itself, if the tool is idempotent or the call surely did not reach it.",
     AT(retry), GIVEN(retry_given), .switches = SWITCHES, .done = finish_again,
     INNER(declare_again_table, "true or { times = 2, backoff = \"200ms\", within = \"5s\" }")},
};

const struct field_table declare_retry_table =
    FIELD_TABLE_OF("retry", "toolgate.Retry", "How often a call may be tried again.", retry_fields);

static const struct field poll_fields[] = {
    {"max", FIELD_COUNT, NULL, NULL, "How often the same call may be made. Default 20.", AT(poll_max),
     LEAST(1)},
    {"every", FIELD_DURATION, "\"5s\"", "string|number",
     "The pause between two of the same call; a call that comes sooner is answered with the time to wait.",
     AT(poll_every_ms), RANGE(1, POLICY_PACE_MAX_S * 1000),
     EXPECTED("\"5s\", \"PT5S\" or seconds, up to a day"),
     NOT_IN_DEFAULTS("the policy of a tool sets how often it may be polled; remove the key here")},
};

const struct field_table declare_poll_table =
    FIELD_TABLE_OF("loop.poll", "toolgate.Poll", "For a tool that agents poll.", poll_fields);

/* poll = true, or poll = { every = "5s", max = 20 } */
static void finish_poll(void *into, enum field_form form)
{
    ((struct policy *)into)->polls = form != FORM_FALSE;
}

static const struct field loop_fields[] = {
    {"repeats", FIELD_COUNT, "3", NULL,
     "toolgate refuses the n-th identical call in a row with an identical result. Default 3.", AT(repeats),
     LEAST(2)},
    {"halt", FIELD_COUNT, "5", NULL, "The n-th such call ends the run. Default 5.", AT(halt), LEAST(2)},
    {"across_turns", FIELD_COUNT, "5", NULL,
     "The run ends when the same call is repeated in this many turns. Default 5.", AT(across_turns),
     LEAST(2)},
    {"volatile", FIELD_STRINGS, NULL, NULL, "Arguments that do not make a call a different one.",
     AT(volatiles),
     NOT_IN_DEFAULTS("the policy of a tool names its volatile arguments; remove the key here")},
    {"volatile_result", FIELD_STRINGS, "{ \"elapsed_ms\", \"meta.request_id\" }", NULL,
     "Fields of results that do not make a result a different one: a path as in gives_ids, or the name of a "
     "field anywhere.",
     AT(volatile_results),
     NOT_IN_DEFAULTS("the policy of a tool names the volatile fields of its results; remove the key here")},
    {"compare", FIELD_CHOICE, NULL, NULL,
     "What makes calls identical: arguments and result, or the arguments alone. Default result; for a tool "
     "that writes always arguments.",
     AT(compare), CHOICES("result arguments", COMPARE_RESULT)},
    {"same_failure", FIELD_CHOICE, "10, \"note\", \"refuse\"", "integer|\"note\"|\"refuse\"",
     "toolgate refuses the n-th failure in a row with the same error, whatever the arguments; \"refuse\" is "
     "the sixth, \"note\" none. Default 10.",
     AT(same_failure), CHOICES("note refuse", SAME_FAILURE_NOTE), RANGE(2, POLICY_SAME_FAILURE_MAX)},
    {"poll", FIELD_TABLE, "true  or  { every = \"5s\", max = 20 }", "boolean|toolgate.Poll",
     "Agents poll the tool until something has changed.", GIVEN(polls_given), .switches = SWITCHES_IN_POLICY,
     .done = finish_poll, INNER(declare_poll_table, "true or { every = \"5s\", max = 20 }")},
};

const struct field_table declare_loop_table =
    FIELD_TABLE_OF("loop", "toolgate.Loop", "What counts as a loop.", loop_fields);

#define LIMIT(member, kind, ...)                                                                             \
#member, kind, "10", "number|false", __VA_ARGS__, .offset = offsetof(struct policy_limits, member),      \
                                                      RANGE(1, FIELD_COUNT_MAX), .or_false = true
static const struct field limits_fields[] = {
    {LIMIT(calls_per_turn, FIELD_WHOLE, "Calls of this tool in one turn.")},
    {LIMIT(calls_per_session, FIELD_WHOLE, "Calls of this tool in one session.")},
    {LIMIT(seconds_per_turn, FIELD_WHOLE,
           "Seconds after its first call of a turn; later calls are refused.")},
    {LIMIT(cost_per_turn, FIELD_COST, "Total cost of its calls in one turn.")},
    {LIMIT(cost_per_session, FIELD_COST, "Total cost of its calls in one session.")},
};

const struct field_table policy_limits_table = FIELD_TABLE_OF(
    "limits", "toolgate.Limits",
    "How much of this tool may be used; false lifts a limit of the configuration's defaults.", limits_fields);

static const struct field rate_fields[] = {
    {"by", FIELD_CHOICE, NULL, NULL,
     "Whose calls count together: of one session, of one user, of all. Default user.", AT(rate_by),
     CHOICES("session user tool", RATE_BY_SESSION)},
};

const struct field_table declare_rate_table =
    FIELD_TABLE_OF("rate", "toolgate.Rate", "How many calls of this tool may be made in a span of time.",
                   rate_fields, ITEMS("string"));

/* "10/minute" */
static struct policy_rate read_one_rate(struct declaration *d, const struct field *field, int at)
{
    static const struct {
        const char *name;
        uint32_t seconds;
    } units[] = {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}};
    const char *text = lua_type(d->L, at) == LUA_TSTRING ? lua_tostring(d->L, at) : "";
    char *end;
    unsigned long count = strtoul(text, &end, 10);
    bool counts = *text >= '1' && *text <= '9' && *end == '/' && count <= POLICY_RATE_COUNT_MAX;
    for (size_t i = 0; counts && i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(end + 1, units[i].name) == 0)
            return (struct policy_rate){(uint32_t)count, units[i].seconds};
    field_mismatch(d, field->name, at,
                   "\"COUNT/UNIT\", a count from 1 to 1000000 and one of second, minute, hour, day");
}

/* rate = "10/minute", or rate = { "10/minute", "100/hour", by = "user" } */
static void read_rate(struct declaration *d, const struct field *field, int at)
{
    struct policy *p = d->policy;
    bool is_list = lua_istable(d->L, at);
    size_t count = is_list ? lua_objlen(d->L, at) : 1;
    p->rate_by = RATE_BY_USER;
    if (is_list) {
        field_require_table(d, field->name, at, "\"10/minute\" or { \"10/minute\", by = \"user\" }");
        field_read_table(d, at, field->name, &declare_rate_table, count, d->out);
    }
    if (!count || count > POLICY_RATES_MAX)
        field_error(d, field->name, "'rate': expected 1 to %u rates, got %zu", POLICY_RATES_MAX, count);
    for (size_t i = 0; i < count; i++) {
        if (is_list)
            lua_rawgeti(d->L, at, (int)i + 1);
        p->rates[p->rate_count++] = read_one_rate(d, field, is_list ? lua_gettop(d->L) : at);
        lua_settop(d->L, at);
    }
}

/* ---- what happens to arguments and results --------------------------------- */

#define COMPACT(member) .offset = offsetof(struct policy_compact, member)
static const struct field compact_fields[] = {
    {"max_bytes", FIELD_WHOLE, "20000", "integer",
     "The most bytes of texts and structured value as sent. Default 20000, if neither budget is given.",
     COMPACT(max_bytes), RANGE(POLICY_COMPACT_MIN, FIELD_COUNT_MAX)},
    {"max_tokens", FIELD_WHOLE, "5000", "integer",
     "The same in tokens, as estimated: one for about four letters, three digits or two signs.",
     COMPACT(max_tokens), RANGE(POLICY_COMPACT_MIN, FIELD_COUNT_MAX)},
    {"keep", FIELD_STRINGS, "{ \"events[].id\", \"title\" }", NULL,
     "Fields that are never removed: a path as in gives_ids, or the name of a field anywhere.",
     COMPACT(keep)},
    {"drop", FIELD_STRINGS, "{ \"events[].raw\" }", NULL, "Fields that are removed first, named likewise.",
     COMPACT(drop)},
};

const struct field_table declare_compact_table =
    FIELD_TABLE_OF("compact", "toolgate.Compact",
                   "What a result that is too large for a model is shortened to.", compact_fields);

/* compact = true, false, or { max_bytes = 20000, … } */
static void finish_compact(void *into, enum field_form form)
{
    struct policy_compact *compact = into;
    compact->on = form != FORM_FALSE;
    if (!compact->max_bytes && !compact->max_tokens)
        compact->max_bytes = POLICY_COMPACT_BYTES;
}

#define SWITCH(name, sentence)                                                                               \
    {                                                                                                        \
#name, FIELD_BOOL, NULL, NULL, sentence, AT(coerce.name), GIVEN(coerce_named.name)                   \
    }
static const struct field coerce_fields[] = {
    SWITCH(json, "A string that holds JSON is parsed, if only the parsed value fits."),
    SWITCH(strings, "\"5\" becomes 5 if only a number fits, \"true\" becomes true; 5 becomes \"5\" if only a "
                    "string fits; spaces around a string go."),
    SWITCH(lists, "One value becomes a list of one, if only a list fits, and a string in a list of one "
                  "becomes the string; \"a, b\" is split if each part fits an enum or a format."),
    SWITCH(nulls, "null for an optional field counts as left out."),
    SWITCH(enums, "The case of an enum's value is corrected."),
    SWITCH(floats, "5.0 becomes 5 if only a whole number fits."),
    SWITCH(names, "A name that differs from one declared, unused name in case, separators or a final s "
                  "becomes that name."),
    SWITCH(words,
           "\"yes\", \"no\", 1 and 0 become a boolean if only a boolean fits, true becomes \"True\" of an "
           "enum; \"\", \"None\" and \"null\" for an optional field count as left out."),
    SWITCH(wrapped, "Parameters inside one undeclared \"arguments\", \"args\", \"input\", \"parameters\", "
                    "\"params\" or the tool's name are taken out of it."),
};
#undef SWITCH

const struct field_table declare_coerce_table = FIELD_TABLE_OF(
    "coerce", "toolgate.Coerce",
    "Which unambiguous values are converted; what is not named stays on, or off if the tool destroys.",
    coerce_fields);

/* coerce = false, or { strings = false }. What is turned on by name is also kept apart: a tool that destroys
 * gets only that. */
static void finish_coerce(void *into, enum field_form form)
{
    struct policy *p = into;
    if (form != FORM_TABLE)
        p->coerce = form == FORM_TRUE ? coerce_options_all : (struct coerce_options){0};
    if (form == FORM_TRUE)
        p->coerce_named = coerce_options_all;
    bool *named = (bool *)&p->coerce_named;
    const bool *on = (const bool *)&p->coerce;
    for (size_t i = 0; i < sizeof(p->coerce); i++)
        named[i] = named[i] && on[i];
}

/* ---- readers of single fields ---------------------------------------------- */

static void read_schema(struct declaration *d, const struct field *field, int at)
{
    enum mark mark = lua_istable(d->L, at) ? sandbox_mark(d->L, at) : MARK_NONE;
    bool table = lua_istable(d->L, at) && (mark == MARK_NONE || mark == MARK_OBJECT);
    if (!table && !lua_isboolean(d->L, at))
        field_mismatch(d, field->name, at, "json \"file\", json [[{…}]] or params { … }");
    *FIELD_INTO(d, field, const struct json *) = field_json(d, field->name, at, NULL);
}

/* A schema, or how far that of the runner of the tool decides. */
static void read_input_schema(struct declaration *d, const struct field *field, int at)
{
    static const struct field mode = {.kind = FIELD_CHOICE, CHOICES("strict learn advise", SCHEMA_STRICT)};
    struct json word = json_string(sandbox_string(d->L, at));
    if (lua_type(d->L, at) != LUA_TSTRING)
        read_schema(d, field, at);
    else if (field_store(&mode, &word, d->arena, &d->policy->schema_mode))
        field_mismatch(d, field->name, at,
                       "\"strict\", \"learn\", \"advise\", or a schema: json \"file\", params { … }");
}

static void read_object(struct declaration *d, const struct field *field, int at)
{
    if (!lua_istable(d->L, at))
        field_mismatch(d, field->name, at, "{ name = value }");
    *FIELD_INTO(d, field, const struct json *) = field_json(d, field->name, at, NULL);
}

/* prepare_tools is the gateway's own; its check and result are a policy's. */
static void read_hook(struct declaration *d, const struct field *field, int at)
{
    struct policy *policy = strcmp(field->name, "prepare_tools") == 0 ? d->set->gateway : d->policy;
    lua_Debug where = {0};
    if (!lua_isfunction(d->L, at) || lua_iscfunction(d->L, at))
        field_mismatch(d, field->name, at, "a function");
    lua_pushvalue(d->L, at);
    lua_getinfo(d->L, ">S", &where);
    lua_pushvalue(d->L, at);
    policy->code->hooks[field->first] = luaL_ref(d->L, LUA_REGISTRYINDEX);
    policy->hook_lines[field->first] = where.linedefined;
    policy->hooks[field->first] = true;
}

static unsigned read_pattern_set(struct declaration *d, const struct field *field, int at)
{
    static const struct str names[] = {STR("secrets"), STR("instructions"), STR("hidden")};
    const size_t count = sizeof(names) / sizeof(names[0]);
    struct str given = lua_type(d->L, at) == LUA_TSTRING ? field_string(d, at) : STR_NONE;
    for (unsigned i = 0; i < count; i++)
        if (str_eq(names[i], given))
            return 1u << i;
    struct str meant = given.len ? suggest_closest(given, names, count) : STR_NONE;
    if (!meant.len)
        field_mismatch(d, field->name, at,
                       "a list of pattern sets, \"secrets\", \"instructions\" or \"hidden\", or a function");
    field_error(d, field->name, "'%s': there is no pattern set \"" STR_FMT "\" (did you mean '" STR_FMT "'?)",
                field->name, STR_ARG(str_cut(given, 60)), STR_ARG(meant));
}

/* check and result of a gateway: a hook, or the names of pattern sets. */
static void read_guard(struct declaration *d, const struct field *field, int at)
{
    uint8_t *sets = field->first == HOOK_CHECK ? &d->policy->check_sets : &d->policy->result_sets;
    if (lua_isfunction(d->L, at)) {
        read_hook(d, field, at);
        return;
    }
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 0;
    if (!count || table_has_other_key(d->L, at, count))
        *sets = (uint8_t)read_pattern_set(d, field, at); /* raises for a table */
    for (size_t i = 1; i <= count; i++) {
        lua_rawgeti(d->L, at, (int)i);
        *sets |= (uint8_t)read_pattern_set(d, field, lua_gettop(d->L));
        lua_pop(d->L, 1);
    }
}

static void read_timezone(struct declaration *d, const struct field *field, int at)
{
    struct why why;
    if (lua_type(d->L, at) != LUA_TSTRING)
        field_mismatch(d, field->name, at, field->expected);
    if (time_zone_load(d->arena, field_string(d, at), FIELD_INTO(d, field, const struct time_zone *), &why) !=
        OK)
        field_error(d, field->name, "'%s': %s: expected a name of the tz database, such as %s", field->name,
                    why.text, field->expected);
}

static int by_path(const void *a, const void *b)
{
    return str_cmp(((const struct policy_id *)a)->path, ((const struct policy_id *)b)->path);
}

static void read_ids(struct declaration *d, const struct field *field, int at)
{
    struct policy_id *ids = ARENA_ARRAY(d->scratch, struct policy_id, IDS_MAX);
    static const char *const parts[] = {"shape", "look_up", "seen", "strict"};
    field_require_table(d, field->name, at, "{ argument = seen() }");
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        if (d->policy->id_count == IDS_MAX)
            field_error(d, field->name, "'ids': expected at most %u arguments", IDS_MAX);
        struct policy_id *id = &ids[d->policy->id_count++];
        int value = lua_gettop(d->L); /* may also be a bare word, as in `ids = { id = seen }` */
        if (lua_type(d->L, value - 1) != LUA_TSTRING)
            field_mismatch(d, "ids", value, "{ argument = seen() or shape \"uuid\" }");
        id->path = field_string(d, value - 1);
        if (sandbox_mark(d->L, value) != MARK_ID) {
            d->parent = "ids";
            field_mismatch(d, id->path.at, value, "seen(), seen { … } or shape \"…\"");
        }
        proxy_unwrap(d->L, value);
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            table_push_field(d->L, value, parts[i]);
        if (lua_type(d->L, value + 1) == LUA_TSTRING)
            id->format = field_string(d, value + 1);
        if (lua_type(d->L, value + 2) == LUA_TSTRING)
            id->look_up = field_string(d, value + 2);
        id->seen = lua_toboolean(d->L, value + 3);
        id->strict = lua_toboolean(d->L, value + 4);
        lua_settop(d->L, value);
    }
    qsort(ids, d->policy->id_count, sizeof(*ids), by_path);
    d->policy->ids = ARENA_KEEP(d->set->arena, ids, d->policy->id_count);
}

/* ---- the rows -------------------------------------------------------------- */

/* Rows of a policy for one tool, which a policy for several tools cannot have. */
static const struct field tool_fields[] = {
    {"title", FIELD_STRING, "\"Calendar events\"", NULL, "A short name, for people.", AT(title)},
    {"description", FIELD_STRING, "\"Read calendar events.\"", NULL,
     "What the tool does; the model reads it in the list of tools and in refusals.", AT(description)},
    {"upstream", FIELD_STRING, "\"calendar\"  or  \"calendar/getEvents\"", NULL,
     "The server that runs it, by its name in the configuration; after a slash, the tool's name there. With "
     "http: the upstream whose address and headers it uses.",
     AT(upstream)},
    {"exec", FIELD_CUSTOM, "{ \"jq\", \"-c\", \".items[]\", \"{file}\", timeout = \"10s\" }", "toolgate.Exec",
     "A command that is the tool, started for each call, without a shell.", READ(declare_exec)},
    {"http", FIELD_CUSTOM, "{ \"GET https://api.example.com/v1/issues/{id}\", headers = { … } }",
     "string|toolgate.Http",
     "The HTTP endpoint that is the tool: arguments become a request, the response the result.",
     READ(declare_http)},
    {"schema", FIELD_CUSTOM, "json \"file.json\"  or  params { … }  or  \"strict\"",
     "toolgate.Schema|\"strict\"|\"learn\"|\"advise\"",
     "JSON Schema of the arguments. Default: the schema of the upstream's tool, of which a word says what it "
     "decides: strict: arguments that do not fit are refused; learn (default): until the model insists and "
     "the server accepts them; advise: they pass with a warning.",
     AT(schema), READ(read_input_schema)},
    {"output_schema", FIELD_CUSTOM, "json \"file.json\"", "toolgate.Schema",
     "JSON Schema of the result; a result that does not fit is broken, and the model reads why.",
     AT(output_schema), READ(read_schema)},
    {"annotations", FIELD_CUSTOM, "{ readOnlyHint = true }", "table<string, any>",
     "Annotations as in MCP, for the tool's definition.", AT(annotations), READ(read_object)},
    {"idempotent", FIELD_BOOL, NULL, NULL,
     "true: making the same call twice has the effect of one, so that a failed call may be repeated "
     "(retry.again). Default: by effects and annotations.",
     AT(idempotent), GIVEN(idempotent_given)},
    {"validate", FIELD_BOOL, "false", NULL, "false: the schema is documentation only.", AT(validate)},
    {"envelopes", FIELD_BOOL, "false", NULL,
     "false: a result that reports its own failure ({\"success\": false}, \"Error: …\") counts as a success.",
     AT(envelopes)},
    {"final", FIELD_BOOL, NULL, NULL, "true: this tool's result ends the run.", AT(final)},
    {"coerce", FIELD_TABLE, "false  or  { strings = false, … }", "boolean|toolgate.Coerce",
     "Which unambiguous arguments are converted. Default: all.", GIVEN(coerce_given), .switches = SWITCHES,
     .done = finish_coerce, INNER(declare_coerce_table, "true, false or { strings = false }"), IN_DEFAULTS},
    {"timezone", FIELD_CUSTOM, "\"Europe/Berlin\"", "string",
     "The time zone of date-times that the model sends without one; its offset is added. Default: they stay "
     "as they are, with a note.",
     AT(timezone), READ(read_timezone)},
    {"formats", FIELD_CHOICE, NULL, NULL, "strict: a date-time without its time zone is refused.",
     AT(formats), GIVEN(formats_given), CHOICES("lenient strict", FORMATS_LENIENT), IN_DEFAULTS},
    {"rate", FIELD_CUSTOM, "{ \"10/minute\", \"100/hour\", by = \"user\" }", "string|toolgate.Rate",
     "How many calls may be made in any second, minute, hour or day, over all daemons.", READ(read_rate),
     NOT_IN_DEFAULTS("the policy of a tool declares its rate; remove the key here")},
    {"cost", FIELD_COST, "0.02", "number",
     "What a call costs, in the unit of the limits; ok { cost = … } replaces it.", AT(cost)},
    {"compact", FIELD_TABLE, "{ max_bytes = 20000, keep = { \"title\" }, drop = { \"events[].raw\" } }",
     "boolean|toolgate.Compact",
     "What a result that is too large for a model is shortened to, field by field.", AT(compact),
     GIVEN(compact_given), .switches = SWITCHES, .done = finish_compact,
     INNER(declare_compact_table, "true, false or { max_bytes = 20000 }"), IN_DEFAULTS},
    {"gives_ids", FIELD_STRINGS, "{ \"events[].id\" }", NULL, "Which fields of this tool's results hold ids.",
     AT(gives_ids)},
    {"aliases", FIELD_STRINGS, "{ \"get_event\" }", NULL,
     "Former names of the tool: a call by one of them runs this tool, and the model learns the new name.",
     AT(aliases)},
    {"prepare", FIELD_CUSTOM, "function(def, call) … end",
     "fun(def: toolgate.Definition, call: toolgate.Call): toolgate.Definition?",
     "The tool's definition for this client; nil hides the tool.", HOOK(HOOK_PREPARE)},
    {"run", FIELD_CUSTOM, "function(args, call) … end", "fun(args: table, call: toolgate.Call): any",
     "The tool itself, written in Lua: returns its value, or retry, failed, transient.", HOOK(HOOK_RUN)},
};

/* Rows that both have; they are read after the others, since rules and examples need the schema. */
static const struct field shared_fields[] = {
    {"use_when", FIELD_STRING, "\"you need what is in the calendar\"", NULL,
     "When the model should use this tool; added to the description.", AT(use_when)},
    {"avoid_when", FIELD_STRING, "\"you only need an address: use lookup_contact\"", NULL,
     "When it should not, and what to use instead; added to the description.", AT(avoid_when)},
    {"effects", FIELD_CHOICE, NULL, NULL, "What a call changes; sets how often the same call may be made.",
     AT(effects), CHOICES("read write destructive toggle", EFFECTS_READ)},
    {"mode", FIELD_CHOICE, NULL, NULL, "enforce; shadow: evaluated and logged, not enforced; off.", AT(mode),
     GIVEN(mode_given), CHOICES("enforce shadow off", POLICY_ENFORCE), IN_DEFAULTS},
    {"shadow_until", FIELD_DATE, "\"2026-12-01\"", "string",
     "The date by which mode shadow is to end. From then on toolgate warns everywhere, and still enforces "
     "nothing.",
     AT(shadow_until), IN_DEFAULTS},
    {"unknown", FIELD_CHOICE, NULL, NULL, "What happens to arguments that an open schema does not name.",
     AT(unknown), GIVEN(unknown_given), CHOICES("pass drop refuse", UNKNOWN_PASS), IN_DEFAULTS},
    {"on_policy_error", FIELD_CHOICE, "\"closed\"  or  \"open\"", "\"closed\"|\"open\"",
     "Whether a policy that fails refuses the call, or passes it.", AT(fails_open), CHOICES("closed open", 0),
     EXPECTED("\"closed\" or \"open\"")},
    {"retry", FIELD_TABLE, "{ repair = 2, same_call = 3 }", "toolgate.Retry",
     "How often a call may be tried again.", INNER(declare_retry_table, "{ repair = 2, same_call = 3 }"),
     IN_DEFAULTS},
    {"loop", FIELD_TABLE, "{ repeats = 3, volatile = { \"request_id\" } }", "toolgate.Loop",
     "What counts as a loop.", INNER(declare_loop_table, "{ repeats = 3 }"), IN_DEFAULTS},
    {"limits", FIELD_TABLE, "{ calls_per_turn = 10, cost_per_session = 2.5 }", "toolgate.Limits",
     "How much of this tool may be used: calls, cost and time.", AT(limits),
     INNER(policy_limits_table, "{ calls_per_turn = 10 }"), IN_DEFAULTS},
    {"ids", FIELD_CUSTOM, "{ contact_id = seen(), [\"items[].id\"] = shape \"uuid\" }",
     "table<string, toolgate.Id>", "Which arguments hold ids, and what an id must be.", READ(read_ids)},
    {"redact", FIELD_STRINGS, "{ \"customers[].email\", \"iban\" }", NULL,
     "Fields of results that are redacted: a path as in gives_ids, or the name of a field anywhere.",
     AT(redact)},
    {"rules", FIELD_CUSTOM, "{ when { … } : needs \"…\", … }", "toolgate.Rule[]",
     "Conditions on arguments and what follows from them; the model reads them in words.",
     READ(declare_rules)},
    {"normalise", FIELD_CUSTOM, "function(args, call) … end",
     "fun(args: table, call: toolgate.Call): table|toolgate.Outcome|nil",
     "Changes the arguments; changed arguments are checked against the schema again.", HOOK(HOOK_NORMALISE)},
    {"check", FIELD_CUSTOM, "function(args, call) … end",
     "fun(args: table, call: toolgate.Call): toolgate.Outcome?",
     "What needs the session: nothing to pass, or repair, refuse, ask.", HOOK(HOOK_CHECK)},
    {"result", FIELD_CUSTOM, "function(result, call) … end",
     "fun(result: any, call: toolgate.Call): toolgate.Outcome?",
     "Judges a result: nothing if it is good, or ok, partial, garbage, …", HOOK(HOOK_RESULT)},
    {"examples", FIELD_CUSTOM, "{ { \"what it shows\", args = { … }, gives = \"pass\" }, … }",
     "toolgate.Example[]", "The specification: they run whenever the file is loaded.",
     READ(declare_examples)},
};

static const struct field_table shared_table = FIELD_TABLE_OF(NULL, NULL, NULL, shared_fields);

static const struct field several_fields[] = {
    {"tools", FIELD_STRINGS, "{ \"write_*\", \"edit_file\" }", NULL,
     "The tools it lies over, beside their own policies: names, or globs with * and ?.", AT(guards),
     .required = true},
};

const struct field_table declare_policy_table =
    FIELD_TABLE_OF("policy", "toolgate.Guard",
                   "What `policy { … }` declares for several tools; of each limit the stricter one holds.",
                   several_fields, ALSO(shared_table));

const struct field_table declare_tool_table =
    FIELD_TABLE_OF("tool", "toolgate.Policy", "What `tool \"name\" { … }` declares; every field is optional.",
                   tool_fields, ALSO(shared_table));

static const struct field gateway_fields[] = {
    {"instructions", FIELD_STRING, "\"…\"", "string", "Instructions that a client receives when it connects.",
     AT(instructions)},
    {"prepare_tools", FIELD_CUSTOM, "function(defs, call) … end",
     "fun(defs: toolgate.Definition[], call: toolgate.Call): toolgate.Definition[]?",
     "The list of tools for this client; nil hides all.", HOOK(HOOK_PREPARE)},
    {"mode", FIELD_CHOICE, NULL, NULL,
     "Of check and result. Default: shadow (evaluated and logged, not enforced); enforce; off.", AT(mode),
     GIVEN(mode_given), CHOICES("enforce shadow off", POLICY_ENFORCE)},
    {"shadow_until", FIELD_DATE, "\"2026-12-01\"", "string",
     "The date by which mode shadow is to end. From then on toolgate warns everywhere, and still enforces "
     "nothing.",
     AT(shadow_until)},
    {"except", FIELD_STRINGS, "{ \"vault__*\" }", NULL,
     "Tools that check and result leave alone: names, or globs with * and ?.", AT(except)},
    {"check", FIELD_CUSTOM, "{ \"secrets\" }",
     "string[]|fun(args: table, call: toolgate.Call): toolgate.Outcome?",
     "Of every tool: pattern sets whose finds in the arguments refuse the call (secrets: keys and tokens; "
     "instructions: orders to the model; hidden: zero-width, bidirectional and tag characters), or a "
     "function as in policy.",
     .read = read_guard, .first = HOOK_CHECK},
    {"result", FIELD_CUSTOM, "{ \"secrets\", \"instructions\" }",
     "string[]|fun(result: any, call: toolgate.Call): toolgate.Outcome?",
     "Of every tool: pattern sets for results. What secrets finds is masked, what hidden finds is removed, "
     "what instructions finds is marked as data for the model; or a function as in policy.",
     .read = read_guard, .first = HOOK_RESULT},
    {"examples", FIELD_CUSTOM, "{ { \"what it shows\", tool = \"…\", args = { … }, gives = \"pass\" }, … }",
     "toolgate.Example[]", "The specification: they run whenever the file is loaded.",
     READ(declare_examples)},
};

const struct field_table declare_gateway_table =
    FIELD_TABLE_OF("gateway", "toolgate.Gateway",
                   "What `gateway { … }` declares for all tools; one file of a folder may.", gateway_fields);

const struct field_table policy_defaults_table = {.fields = tool_fields,
                                                  .count = sizeof(tool_fields) / sizeof(tool_fields[0]),
                                                  .also = &shared_table,
                                                  .defaults_only = true};
