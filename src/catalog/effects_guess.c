/*
 * One table of verbs. A word that is as often a noun (order, place, record, schedule) is not in it, nor is
 * one whose effect depends on the tool (run, open, click, start): a tool guessed to read that writes is the
 * worse error.
 */
#include "catalog/effects_guess.h"

#include <ctype.h>

#define EFFECTS_GUESS_WORD_MAX_BYTES 16u /* no verb of the table is longer */

static const struct {
    enum policy_effects effects;
    const char *verbs; /* a space before and behind each */
} table[] = {
    {EFFECTS_READ,
     " get list search read find fetch query describe check count status wait poll view show lookup "
     "look inspect browse preview retrieve peek ping grep cat ls stat tail head diff is has exists "
     "calculate compute estimate compare summarize explain recommend suggest "
     "whoami "},
    {EFFECTS_WRITE,
     " create add insert send post book pay transfer update set write patch move put upsert edit modify "
     "change "
     "append prepend replace save upload publish submit reply share invite assign unassign rename copy "
     "duplicate clone merge commit push register unregister enroll enable disable approve reject cancel "
     "reschedule reserve buy purchase refund deposit withdraw donate grant revoke subscribe unsubscribe "
     "follow "
     "unfollow mark attach detach archive unarchive restore import install deploy provision trigger notify "
     "apply "
     "revert rollback clear reset discard increment decrement lock unlock ban unban disconnect mkdir mv cp "
     "refill refuel recharge resume suspend pause redeem confirm "},
    {EFFECTS_DESTRUCTIVE, " delete remove drop destroy purge wipe erase truncate uninstall unlink rm rmdir "
                          "overwrite terminate kill shred "},
};

static enum policy_effects effects_of_word(struct str word)
{
    char padded[EFFECTS_GUESS_WORD_MAX_BYTES + 3] = " ";
    if (!word.len || word.len > EFFECTS_GUESS_WORD_MAX_BYTES)
        return EFFECTS_UNDECLARED;
    for (size_t i = 0; i < word.len; i++)
        padded[i + 1] = (char)tolower((unsigned char)word.at[i]);
    padded[word.len + 1] = ' ';
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strstr(table[i].verbs, padded))
            return table[i].effects;
    return EFFECTS_UNDECLARED;
}

/* Takes the next word off `text`: "get_user", "get-user", "getUser" and "HTTPGet" are two words each. */
static struct str next_word(struct str *text)
{
    size_t start = 0, end;
    if (!text->len) /* nothing may be added to NULL, not even 0 */
        return STR_NONE;
    while (start < text->len && !isalnum((unsigned char)text->at[start]))
        start++;
    for (end = start; end < text->len && isalnum((unsigned char)text->at[end]); end++) {
        bool upper = isupper((unsigned char)text->at[end]);
        bool after_lower = end > start && !isupper((unsigned char)text->at[end - 1]);
        bool before_lower = end + 1 < text->len && islower((unsigned char)text->at[end + 1]);
        if (end > start && upper && (after_lower || before_lower))
            break;
    }
    struct str word = {text->at + start, end - start};
    *text = str_from(*text, end);
    return word;
}

/* "get_or_create" does what the stricter verb does. In "get_post" the later word may be a noun or a verb. */
static enum policy_effects effects_of_words(struct str words)
{
    struct str first = next_word(&words), before = first, word;
    enum policy_effects effects = effects_of_word(first);
    bool unsure = false;
    if (effects == EFFECTS_UNDECLARED)
        return effects;
    for (; (word = next_word(&words)).len; before = word) {
        enum policy_effects later = effects_of_word(word);
        bool joined =
            str_is(before, "and") || str_is(before, "or") || str_is(before, "And") || str_is(before, "Or");
        bool checks_in_or_out = str_is(before, "check") && (str_is(word, "in") || str_is(word, "out"));
        if (joined && later > effects)
            effects = later;
        unsure = unsure || later > EFFECTS_READ || checks_in_or_out;
    }
    return effects == EFFECTS_READ && unsure ? EFFECTS_UNDECLARED : effects;
}

/* The parts before the last one name a server or a group, unless only they begin with a verb:
 * "read_file__v2". */
enum policy_effects effects_guess(struct str name)
{
    enum policy_effects effects = EFFECTS_UNDECLARED;
    while (name.len && !effects) {
        size_t at = name.len; /* where the part behind the last "__", '.', '/' or ':' begins */
        while (at > 0 && !strchr("./:", name.at[at - 1]) &&
               !(at > 1 && name.at[at - 1] == '_' && name.at[at - 2] == '_'))
            at--;
        effects = effects_of_words(str_from(name, at));
        while (at > 0 && !isalnum((unsigned char)name.at[at - 1]))
            at--;
        name.len = at;
    }
    return effects;
}
