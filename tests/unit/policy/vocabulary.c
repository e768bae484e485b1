/* What the reference documents exists, and nothing else does. */
#include "policy/policy_support.h"
#include "policy/reference_support.h"

static void read_the_reference(void)
{
    reference_read();
}

GROUP(read_the_reference, do_nothing)

/* Reads each word as a policy would: a word that is registered but not defined fails while the sandbox is set
 * up. */
TEST(words_exist)
{
    const struct vocabulary_word *words = reference.words;
    size_t count = reference.word_count;
    for (size_t i = 0; i < count; i++) {
        const char *type = words[i].type ? words[i].type : "";
        bool method = str_starts(str_of(type), "fun(self:");
        const char *source = arena_printf(arena,
                                          method ? "local _ = always.%s return tool 't' {}"
                                                 : "local _ = %s return tool 't' {}",
                                          words[i].name)
                                 .at;
        const char *fault = fault_of(source);
        if (fault)
            fail_msg("%s is registered, and a policy hears: %s", words[i].name, fault);
    }
}

/* ---- parameters of words --------------------------------------------------------------------- */

static const struct reference_table *table_of(const char *of)
{
    const struct reference_table *tables = reference.tables;
    size_t count = reference.table_count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(tables[i].of, of) == 0)
            return &tables[i];
    fail_msg("no table of fields '%s'", of);
    return NULL;
}

/* The error for an unknown option of a type lists the options of the reference. */
TEST(options_of_types)
{
    static const struct {
        const char *source, *of;
    } types[] = {{"str { zz = 1 }", "str"},
                 {"int { zz = 1 }", "int, num"},
                 {"num { zz = 1 }", "int, num"},
                 {"list { str, zz = 1 }", "list"},
                 {"bool { zz = 1 }", NULL}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const char *fault = fault_of(arena_printf(arena, "local _ = %s", types[i].source).at);
        const char *takes = fault ? strstr(fault, "it takes ") : NULL;
        const struct reference_table *tables[] = {table_of("a type"),
                                                  types[i].of ? table_of(types[i].of) : NULL};
        size_t told = 1, known = 0;
        assert_non_null(takes);
        for (const char *at = takes; (at = strstr(at, ", ")); at++)
            told++;
        for (size_t t = 0; t < 2 && tables[t]; t++)
            for (size_t n = 0; n < tables[t]->count; n++, known++)
                if (!strstr(takes, tables[t]->fields[n]))
                    fail_msg("%s: '%s' is documented and not taken: %s", types[i].source,
                             tables[t]->fields[n], takes);
        if (told != known)
            fail_msg("%s: takes %zu options, %zu are documented: %s", types[i].source, told, known, takes);
    }
}

/* Each field of a policy's tables is accepted by its reader, and an unknown one is an error. */
TEST(fields_are_taken)
{
    static const struct {
        const char *of, *source;
    } places[] = {{"tool", "return tool 't' { %s = print_ }"},
                  {"gateway", "return gateway { %s = print_ }"},
                  {"retry", "return tool 't' { retry = { %s = print_ } }"},
                  {"loop", "return tool 't' { loop = { %s = print_ } }"},
                  {"loop.poll", "return tool 't' { loop = { poll = { %s = print_ } } }"},
                  {"limits", "return tool 't' { limits = { %s = print_ } }"},
                  {"compact", "return tool 't' { compact = { %s = print_ } }"},
                  {"coerce", "return tool 't' { coerce = { %s = print_ } }"},
                  {"an example", "return tool 't' { examples = { { 'x', %s = print_ } } }"},
                  {"repair", "repair { message = '', %s = print_ }"},
                  {"ok", "ok { %s = print_ }"},
                  {"ok.follow_up", "ok { follow_up = { tool = '', %s = print_ } }"},
                  {"tool_return", "tool_return { %s = print_ }"},
                  {"seen", "seen { %s = print_ }"},
                  {"params", "params({}, { %s = print_ })"}};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const struct reference_table *table = table_of(places[i].of);
        struct str base = arena_printf(arena, "local print_ = array {} %s", places[i].source);
        for (size_t n = 0; n <= table->count; n++) {
            const char *name = n < table->count ? table->fields[n] : "stranger";
            const char *fault = fault_of(arena_printf(arena, base.at, name).at);
            bool unknown = fault && (strstr(fault, "unknown field") || strstr(fault, "unknown option"));
            if (unknown != (n == table->count))
                fail_msg("%s.%s: %s", places[i].of, name, fault ? fault : "taken without a word");
        }
    }
}

/* call.NAME for each documented name; an unknown one is an error. */
TEST(call_has_its_fields)
{
    const struct reference_table *table = table_of("call");
    for (size_t n = 0; n <= table->count; n++) {
        const char *name = n < table->count ? table->fields[n] : "stranger";
        struct policy_call call = {.turn = 1};
        const char *source =
            arena_printf(arena, "return tool 't' { check = function(args, call) local _ = call.%s end }",
                         name)
                .at;
        if (n == table->count) {
            assert_has(fault_of(source), "there is no call.stranger");
            break;
        }
        policy_check(load(source), &call, value_of("{}"), arena, &said);
        assert_int_equal(said.kind, OUTCOME_PASS);
    }
}
