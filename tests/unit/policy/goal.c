/* What the words read in the user's request: wants_all and newest. */
#include "policy/policy_support.h"

static const struct {
    const char *goal;
    bool all;
} requests[] = {
    /* The plain words. */
    {"delete all of them", true},
    {"Delete ALL my drafts", true},
    {"show all", true},
    {"all", true},
    {"everyone in the team", true},
    {"mail everybody about the outage", true},
    {"every single order of cust-7", true},
    {"each order from May", true},
    {"list everything", true},
    {"the entire list, please", true},
    {"the list in its entirety", true},
    {"the whole history of this ticket", true},
    {"what do I have this week? all of it", true},
    {"send it to them all", true},
    {"any and all invoices", true},
    {"list all the orders, not the first page only", true},
    {"all events of the whole week", true},
    {"\"all\" orders", true},
    {"\u201call\u201d orders", true},
    {"give me the orders\u2014all of them", true},
    {"orders (all)", true},
    {"no, all of them", true},
    {"not the first ten, everything", true},
    {"do not show only two but all", true},
    {"not just these, all of them", true},
    {"not only all open ones", true},
    {"don't forget all the attendees", true},
    {"do not skip all the old ones", true},
    {"with no limit show all", true},
    {"why not show all?", true},
    {"why don't you list all orders", true},
    {"I can't find it, list all", true},
    {"almost all contacts", true},
    {"after all that, list all orders", true},
    {"hi all, show me every invoice", true},
    {"the largest of all orders", true},
    {"everything about project Faro", true},
    {"list everyone's birthday", true},
    {"show the whole list of orders", true},
    {"lösche alle Entwürfe", true},
    {"zeig mir jede Rechnung", true},
    {"Zeige sämtliche Termine", true},
    {"die gesamte Liste bitte", true},
    {"muestra todos los pedidos", true},
    {"borra todas las notas", true},
    {"quiero todo lo que tengas", true},
    {"montre-moi toutes les factures", true},
    {"supprime tous les brouillons", true},
    {"envoie-le à tout le monde", true},
    {"删除所有草稿", true},
    {"列出全部订单", true},
    {"给每个客户发邮件", true},
    /* One thing as a whole, and other languages' idioms. */
    {"summarize the whole document", false},
    {"read the entire file", false},
    {"translate the whole page", false},
    {"vor allem die neueste", false},
    {"alles klar, danke", false},
    {"jeden Montag um neun", false},
    {"alle zwei Tage", false},
    {"nicht alle, nur die neueste", false},
    {"hola a todos", false},
    {"todos los lunes", false},
    {"add it to my todo list", false},
    {"tous les jours à neuf heures", false},
    {"merci à tous", false},
    {"pas toutes", false},
    {"转移所有权", false},
    {"每个月的报告", false},
    {"不要所有的", false},
    /* Parts of other words, and compounds. */
    {"an all-day event on Friday", false},
    {"an all\u2011day event", false},
    {"book an all-inclusive hotel", false},
    {"when is the all-hands?", false},
    {"what is the overall total?", false},
    {"install the small tool", false},
    {"call the hall", false},
    {"a tall man", false},
    {"my everyday notes", false},
    {"wholesale prices", false},
    {"teach me", false},
    {"y'all", false},
    /* Negations. */
    {"not all of them", false},
    {"not every order", false},
    {"not everyone", false},
    {"I don't want all of them", false},
    {"I don\u2019t need everything", false},
    {"no need for all orders", false},
    {"without all the details", false},
    {"the first ten instead of all", false},
    {"one rather than all", false},
    {"you cannot delete all orders", false},
    {"never send everything", false},
    {"some of them, not the whole list", false},
    /* Idioms. */
    {"not at all", false},
    {"is there any order at all?", false},
    {"is it all right to cancel?", false},
    {"after all, it is late", false},
    {"above all the newest", false},
    {"first of all show the newest", false},
    {"it broke all of a sudden", false},
    {"that's all", false},
    {"the last ten, that is all", false},
    {"Thanks all", false},
    {"Hello everyone, what is on today?", false},
    {"can you all see it?", false},
    {"I work all day", false},
    {"it fails all the time", false},
    {"remind me every day", false},
    {"a meeting every Monday", false},
    {"ping it every 5 minutes", false},
    {"every two weeks", false},
    {"every other week", false},
    {"each time it fails", false},
    {"two tickets for 5 each", false},
    {"they know each other", false},
    {"it is fine on the whole", false},
    {"round to a whole number", false},
    {"is everything okay?", false},
    {"all I need is the newest", false},
    {"is that all?", false},
    {"how many are there all together?", false},
    {"it fails every once in a while", false},
    {"show every third row", false},
    {"thanks for everything, what is on today?", false},
    {"a whole lot of mail", false},
    /* Both: what is left decides. */
    {"all-day events of all calendars", true},
    {"cancel the all-hands and every other meeting, then everything else", true},
    {"every one of them", true},
    {"all but the last one", true},
    {"I'd like them all.", true},
    {"not all, just the first", false},
    /* Nothing of the kind. */
    {"what is on today?", false},
    {"", false},
    {"...", false},
};

TEST(wants_all_reads_the_request)
{
    struct buf wrong = buf_in(arena);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        const char *got = eval(text_of(arena_printf(arena, "wants_all [==[%s]==]", requests[i].goal)));
        const char *expected = requests[i].all ? "{\"v\":true}" : "{\"v\":false}";
        if (strcmp(got, expected) != 0)
            buf_printf(&wrong, "\n'%s': expected %s, got %s", requests[i].goal, expected, got);
    }
    if (wrong.len)
        fail_msg("%s", text_of(buf_view(&wrong)));
}

#define MAILS                                                                                                \
    "{ { id = 1, at = '2026-05-01', title = 'Invoice May', from = 'Ana' },"                                  \
    "  { id = 2, at = '2026-06-01', title = 'Party at Faro', from = 'Bo' },"                                 \
    "  { id = 3, at = '2026-04-01', title = 'Invoices April', tags = { 'faro' } },"                          \
    "  { id = 4, at = '2026-05-01', title = 'invoice, again' }, { id = 5, title = 'invoice without date' } " \
    "}"

static const struct {
    const char *list, *field, *goal, *expected; /* what the expression before .id gives */
} choices[] = {
    {MAILS, "at", NULL, "2"},
    {MAILS, "at", "''", "2"},
    {MAILS, "at", "'pay the INVOICE'", "1"},                /* not the newest; the first of two equal */
    {MAILS, "at", "'the latest invoices from Ana'", "1"},   /* two words beat one */
    {MAILS, "at", "'the invoice about Faro'", "3"},         /* in a list inside of the item */
    {MAILS, "at", "'parties'", "2"},                        /* plural */
    {MAILS, "at", "'what is the newest one at all?'", "2"}, /* no word that says which */
    {MAILS, "at", "'the contract of Zoe'", "2"},            /* no item has a word */
    {MAILS, "at", "'2026-04-01'", "2"},                     /* the field itself is no text */
    {"{ { id = 1, v = 9 }, { id = 2, v = '10' }, { id = 3, v = 2 } }", "v", NULL, "2"},
    {"{ { id = 1, v = '2026-05-01T10:00:00+02:00' }, { id = 2, v = '2026-05-01T09:00:00Z' } }", "v", NULL,
     "2"},
    {"{ { id = 1, v = '2026-05-01' }, { id = 2, v = 1777680000 }, { id = 3, v = 1777600000000 } }", "v", NULL,
     "2"},
    {"{ { id = 1, v = 1777680000000 }, { id = 2, v = '2026-05-01' } }", "v", NULL, "1"},
    {"{ { id = 1, v = 'b' }, { id = 2, v = 'c' }, { id = 3, v = 'c' } }", "v", NULL, "2"},
    {"{ { id = 1, v = 5, t = 'Q3 report' }, { id = 2, v = 6, t = 'Q4 report' } }", "v", "'the Q3 reports'",
     "1"},
    {"{ { id = 1, v = 5, t = 'houses' }, { id = 2, v = 6, t = 'boxes' } }", "v", "'a house'", "1"},
    {"{ { id = 1, v = 5, t = 'address' }, { id = 2, v = 6, t = 'movies' } }", "v", "'addresses'", "1"},
    {"{ { id = 1, v = 5, t = 'movies' }, { id = 2, v = 6, t = 'status' } }", "v", "'that movie'", "1"},
};

TEST(newest_takes_what_is_meant)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        const char *goal = choices[i].goal ? choices[i].goal : "nil";
        const char *expression =
            text_of(arena_printf(arena, "newest(%s, '%s', %s).id", choices[i].list, choices[i].field, goal));
        const char *got = eval(expression);
        const char *wanted = text_of(arena_printf(arena, "{\"v\":%s}", choices[i].expected));
        if (strcmp(got, wanted) != 0)
            fail_msg("%s: expected %s, got %s", expression, wanted, got);
    }
    assert_string_equal("{\"v\":3}", eval("select(2, newest(" MAILS ", 'at', 'invoice Faro'))"));
    assert_string_equal("{\"v\":true}", eval("newest({}, 'at', 'invoice') == nil"));
    assert_string_equal("{\"v\":true}", eval("newest({ { t = 'invoice' } }, 'at', 'invoice') == nil"));
    assert_has(eval("newest({}, 'at', 5)"), "newest: expected (list, field, goal), got");
}
