/* An id counts as given by the user only if it is a whole token of the goal. */
#include "unit.h"
#include "gate/ids.h"

static const struct {
    const char *goal, *id;
    bool given;
} goals[] = {
    {"close order 5", "5", true},
    {"5", "5", true},
    {"order #5, please", "5", true},
    {"order 5.", "5", true},
    {"order (5)?", "5", true},
    {"id=5&x=1", "5", true},
    {"https://shop.example/orders/5/items", "5", true},
    {"orders 4, 5 and 6", "5", true},
    {"id:5", "5", true},
    {"order EVT-12 again", "evt-12", true},
    {"mail ana@example.com.", "ana@example.com", true},
    {"Order \"t7\"", "t7", true},
    {"t7's price", "t7", true},
    {"t7 - t8", "t7", true},
    {"what of 12345\u3002", "12345", true},
    {"\u8ba2\u535512345\u7684\u72b6\u6001", "12345", true},
    {"see /a/b/ now", "/a/b/", true},
    {"15 and 5", "5", true},
    {"show 15 items", "5", false},
    {"show 51 items", "5", false},
    {"INV-5", "5", false},
    {"order 5-a", "5", false},
    {"order t71", "t7", false},
    {"order at7", "t7", false},
    {"version 2.5", "5", false},
    {"1,005 items", "005", false},
    {"at 12:30", "30", false},
    {"evt-123", "evt-12", false},
    {"for $5", "5", false},
    {"5% more", "5", false},
    {"my_t7", "t7", false},
    {"mail ana@example.com", "ana", false},
    {"report.pdf", "report", false},
    {"d\u00e9ja", "ja", false},
    {"caf\u00e9", "caf", false},
    {"\u0437\u0430\u043a\u0430\u04375", "5", false},
    {"close it", "", false},
    {"", "5", false},
};

TEST(an_id_is_a_whole_token)
{
    for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++)
        if (ids_in_goal(str_of(goals[i].goal), str_of(goals[i].id)) != goals[i].given)
            fail_msg("'%s' in '%s': expected %s", goals[i].id, goals[i].goal, goals[i].given ? "yes" : "no");
}
