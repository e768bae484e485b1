/* One pass, tag by tag. Good enough to read, and not meant to be shown as a page. */
#include "result/compact_internal.h"

#include "base/arena.h"
#include "base/buf.h"

#define TAG_NAME_MAX_BYTES 12u

struct reading {
    struct buf out;
    const char *at, *end;
    bool space; /* before the next word */
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool begins(const char *at, const char *end, const char *with)
{
    for (; *with; at++, with++)
        if (at >= end || lower(*at) != *with)
            return false;
    return true;
}

bool compact_html_detect(struct str text)
{
    text = str_trim(text);
    const char *end = text.at + text.len;
    return text.len && (begins(text.at, end, "<!doctype html") || begins(text.at, end, "<html"));
}

static const char *after(const struct reading *r, const char *from, const char *what)
{
    size_t n = strlen(what);
    for (const char *p = from; p + n <= r->end; p++)
        if (begins(p, r->end, what))
            return p + n;
    return r->end;
}

static void break_line(struct reading *r, const char *mark)
{
    if (r->out.len && r->out.at[r->out.len - 1] != '\n')
        buf_byte(&r->out, '\n');
    buf_text(&r->out, mark);
    r->space = false;
}

static struct str name_of(const char *at, const char *end, char name[TAG_NAME_MAX_BYTES])
{
    size_t n = 0;
    while (at < end && n < TAG_NAME_MAX_BYTES &&
           ((lower(*at) >= 'a' && lower(*at) <= 'z') || (n && *at >= '0' && *at <= '9')))
        name[n++] = lower(*at++);
    return (struct str){name, n};
}

static bool is_one_of(struct str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}
#define IS_ONE_OF(name, names) is_one_of(name, names, sizeof(names) / sizeof(*(names)))

static void read_tag(struct reading *r)
{
    static const char *const unseen[] = {"script", "style", "svg", "noscript", "template", "iframe"};
    static const char *const blocks[] = {
        "p",      "div",    "br",  "tr",   "table", "ul", "ol", "section", "article", "title",     "main",
        "header", "footer", "nav", "form", "pre",   "dl", "dt", "dd",      "body",    "blockquote"};
    char letters[TAG_NAME_MAX_BYTES];
    if (begins(r->at, r->end, "<!--")) {
        r->at = after(r, r->at + 4, "-->");
        return;
    }
    bool closes = r->at + 1 < r->end && r->at[1] == '/';
    struct str name = name_of(r->at + 1 + closes, r->end, letters);
    r->at = after(r, r->at, ">");
    if (!closes && IS_ONE_OF(name, unseen)) {
        char closing[TAG_NAME_MAX_BYTES + 3] = "</";
        memcpy(closing + 2, name.at, name.len);
        r->at = after(r, after(r, r->at, closing), ">");
    } else if (str_is(name, "li") && !closes) {
        break_line(r, "- ");
    } else if (name.len == 2 && name.at[0] == 'h' && name.at[1] >= '1' && name.at[1] <= '6') {
        break_line(r, closes ? "" : "# ");
    } else if (IS_ONE_OF(name, blocks)) {
        break_line(r, "");
    } else if (str_is(name, "td") || str_is(name, "th")) {
        buf_text(&r->out, closes ? " |" : "");
    }
}

static bool read_entity(struct reading *r)
{
    static const struct {
        const char *name, *text;
    } known[] = {{"&amp;", "&"}, {"&lt;", "<"},   {"&gt;", ">"},  {"&quot;", "\""},
                 {"&#39;", "'"}, {"&apos;", "'"}, {"&nbsp;", " "}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (begins(r->at, r->end, known[i].name)) {
            buf_text(&r->out, known[i].text);
            r->at += strlen(known[i].name);
            return true;
        }
    return false;
}

static void read_text(struct reading *r)
{
    if ((unsigned char)*r->at <= ' ') {
        r->space = true;
        r->at++;
        return;
    }
    if (r->space && r->out.len && r->out.at[r->out.len - 1] != '\n' && r->out.at[r->out.len - 1] != ' ')
        buf_byte(&r->out, ' ');
    r->space = false;
    if (*r->at != '&' || !read_entity(r))
        buf_byte(&r->out, *r->at++);
}

struct str compact_html_to_text(struct arena *arena, struct str page)
{
    struct reading r = {.out = buf_in(arena), .at = page.at, .end = page.at + page.len};
    while (r.at < r.end) {
        bool is_tag = *r.at == '<' && r.at + 1 < r.end &&
                      (r.at[1] == '/' || r.at[1] == '!' || (lower(r.at[1]) >= 'a' && lower(r.at[1]) <= 'z'));
        if (is_tag)
            read_tag(&r);
        else
            read_text(&r);
    }
    return str_trim(buf_view(&r.out));
}
