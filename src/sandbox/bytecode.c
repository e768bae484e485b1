/* The dump is a header and the functions, inner ones before the enclosing ones. All numbers but instructions
 * are ULEB128. LuaJIT's lj_bcdump.h documents the format. */
#include "sandbox/bytecode.h"

#include "base/arena.h"
#include "base/buf.h"

#include <lauxlib.h>

#define DUMP_VERSION   2u
#define DUMP_STRIPPED  2u
#define DUMP_FLAGS_MAX 15u /* big endian, stripped, FFI, two-slot frames */
#define DUMP_BIG       1u
#define FUNCTION_MIN   10u /* bytes of a function in a dump */

enum constant {
    CONSTANT_FUNCTION,
    CONSTANT_TABLE,
    CONSTANT_I64,
    CONSTANT_U64,
    CONSTANT_COMPLEX,
    CONSTANT_STRING
};
enum item { ITEM_INTEGER = 3, ITEM_NUMBER = 4, ITEM_STRING = 5 };

struct dump {
    const unsigned char *at, *end;
    struct arena *arena;
    const struct bytecode **pending; /* functions whose enclosing function is still to come */
    size_t count, room;
    bool bad;
};

static const unsigned char *take(struct dump *d, size_t n)
{
    if (d->bad || n > (size_t)(d->end - d->at)) {
        d->bad = true;
        return NULL;
    }
    d->at += n;
    return d->at - n;
}

static uint32_t take_byte(struct dump *d)
{
    const unsigned char *byte = take(d, 1);
    return byte ? *byte : 0;
}

static uint32_t take_number(struct dump *d)
{
    uint32_t n = 0, byte, shift = 0;
    do {
        byte = take_byte(d);
        n |= shift < 32 ? (byte & 0x7f) << shift : 0;
        shift += 7;
    } while (byte & 0x80);
    return n;
}

static struct str take_string(struct dump *d, size_t len)
{
    const char *at = (const char *)take(d, len);
    return at ? (struct str){at, len} : STR_NONE;
}

/* A copy, as the dump does not align its arrays. */
static const void *take_array(struct dump *d, size_t count, size_t size)
{
    const unsigned char *from = take(d, count * size);
    void *to = arena_alloc(d->arena, count * size);
    if (from && count)
        memcpy(to, from, count * size);
    return to;
}

static void skip_table(struct dump *d)
{
    uint32_t items = take_number(d), pairs = take_number(d);
    for (uint64_t i = 0; i < items + 2 * (uint64_t)pairs && !d->bad; i++) {
        uint32_t type = take_number(d);
        if (type >= ITEM_STRING)
            take(d, type - ITEM_STRING);
        else if (type >= ITEM_INTEGER)
            take_number(d);
        if (type == ITEM_NUMBER)
            take_number(d);
    }
}

static struct bytecode_constant take_constant(struct dump *d)
{
    struct bytecode_constant constant = {STR_NONE, NULL};
    uint32_t type = take_number(d);
    if (type >= CONSTANT_STRING)
        constant.text = take_string(d, type - CONSTANT_STRING);
    else if (type == CONSTANT_FUNCTION && d->count)
        constant.function = d->pending[--d->count];
    else if (type == CONSTANT_TABLE)
        skip_table(d);
    else
        d->bad |= type == CONSTANT_FUNCTION;
    for (int i = type == CONSTANT_COMPLEX ? 4 : 2; type >= CONSTANT_I64 && type <= CONSTANT_COMPLEX && i; i--)
        take_number(d);
    return constant;
}

static const struct bytecode *take_function(struct dump *d)
{
    struct bytecode *code = ARENA_NEW(d->arena, struct bytecode);
    take_byte(d); /* flags */
    code->parameters = (uint8_t)take_byte(d);
    take_byte(d); /* registers */
    code->upvalue_count = take_byte(d);
    code->constant_count = take_number(d);
    uint32_t numbers = take_number(d);
    code->count = take_number(d);
    uint32_t debug = take_number(d);
    code->first_line = take_number(d);
    uint32_t line_count = take_number(d);
    code->at = take_array(d, code->count, sizeof(uint32_t));
    code->upvalues = take_array(d, code->upvalue_count, sizeof(uint16_t));
    d->bad |= code->constant_count > (size_t)(d->end - d->at);
    if (d->bad)
        return code;
    struct bytecode_constant *constants =
        ARENA_ARRAY(d->arena, struct bytecode_constant, code->constant_count);
    for (uint32_t i = code->constant_count; i-- > 0;) /* in reverse order of their indexes */
        constants[i] = take_constant(d);
    code->constants = constants;
    for (; numbers && !d->bad; numbers--) { /* integers are one number, others two, by the lowest bit */
        bool two = *d->at & 1;
        take_number(d);
        if (two)
            take_number(d);
    }
    d->bad |= debug == 0;
    code->line_width = line_count < 256 ? 1 : line_count < 65536 ? 2 : 4;
    code->lines = take_array(d, code->count, code->line_width);
    struct str *names = ARENA_ARRAY(d->arena, struct str, code->upvalue_count);
    for (uint32_t i = 0; i < code->upvalue_count && !d->bad; i++) {
        const unsigned char *nul = memchr(d->at, '\0', (size_t)(d->end - d->at));
        names[i] = take_string(d, nul ? (size_t)(nul - d->at) : SIZE_MAX);
        take_byte(d);
    }
    code->upvalue_names = names;
    return code;
}

static int add_bytes(lua_State *L, const void *bytes, size_t len, void *out)
{
    (void)L;
    buf_add(out, bytes, len);
    return 0;
}

const struct bytecode *bytecode_read(lua_State *L, int at, struct arena *arena)
{
    struct buf bytes = buf_in(arena);
    lua_pushvalue(L, at);
    struct dump d = {.arena = arena, .bad = lua_dump(L, add_bytes, &bytes) != 0};
    lua_pop(L, 1);
    struct str text = buf_view(&bytes);
    d.at = (const unsigned char *)text.at;
    d.end = d.at + text.len;
    d.room = text.len / FUNCTION_MIN + 1;
    d.pending = ARENA_ARRAY(arena, const struct bytecode *, d.room);
    const unsigned char *head = take(&d, 4);
    d.bad |= !head || memcmp(head, "\033LJ", 3) != 0 || head[3] != DUMP_VERSION;
    uint32_t flags = take_number(&d);
    d.bad |= flags > DUMP_FLAGS_MAX || flags & (DUMP_STRIPPED | DUMP_BIG);
    take_string(&d, take_number(&d));
    for (uint32_t len = take_number(&d); len && !d.bad; len = take_number(&d)) {
        const unsigned char *end = d.at + len;
        const struct bytecode *code = take_function(&d);
        d.bad |= d.at > end || (size_t)(end - d.at) > (size_t)(d.end - d.at) || d.count == d.room;
        if (d.bad)
            break;
        d.at = end; /* skips the names of locals */
        d.pending[d.count++] = code;
    }
    if (d.bad || d.count != 1)
        luaL_error(L, "toolgate does not know the bytecode of this LuaJIT");
    return d.pending[0];
}

int bytecode_line(const struct bytecode *code, uint32_t i)
{
    uint32_t line = 0;
    if (i < code->count)
        memcpy(&line, code->lines + (size_t)i * code->line_width, code->line_width);
    return (int)(code->first_line + line);
}

struct str bytecode_text(const struct bytecode *code, uint32_t constant)
{
    return constant < code->constant_count ? code->constants[constant].text : STR_NONE;
}

/* The opcode of instruction `i` of the source, or of the first function in it. */
static uint8_t probe(lua_State *L, struct arena *arena, const char *source, bool inner, uint32_t i)
{
    if (luaL_loadbuffer(L, source, strlen(source), "=probe") != 0)
        lua_error(L);
    const struct bytecode *code = bytecode_read(L, -1, arena);
    lua_pop(L, 1);
    for (uint32_t c = 0; inner && c < code->constant_count; c++)
        if (code->constants[c].function)
            code = code->constants[c].function, inner = false;
    if (inner || i >= code->count)
        luaL_error(L, "toolgate does not know the bytecode of this LuaJIT");
    return (uint8_t)BYTECODE_OP(code->at[i]);
}

void bytecode_detect_opcodes(lua_State *L, struct arena *arena, struct bytecode_opcodes *out)
{
    static const char *const writes[BYTECODE_UPVALUE_WRITES] = {
        "local a return function(b) a = b end", "local a return function() a = 'b' end",
        "local a return function() a = 1 end", "local a return function() a = nil end"};
    out->global_read = probe(L, arena, "return x", false, 0);
    out->global_write = probe(L, arena, "x = nil", false, 1);
    out->field_read = probe(L, arena, "return x.y", false, 1);
    out->field_write = probe(L, arena, "x.y = nil", false, 2);
    out->key_write = probe(L, arena, "x[y] = z", false, 3);
    out->index_write = probe(L, arena, "x[1] = y", false, 2);
    out->copy = probe(L, arena, "local a = x local b = a", false, 1);
    out->set_nil = probe(L, arena, "local a, b", false, 0);
    out->no_register[0] = probe(L, arena, "return", false, 0);
    out->no_register[1] = probe(L, arena, "local a = x if a then a = 1 end", false, 1);
    out->no_register[2] = probe(L, arena, "local a = x if not a then a = 1 end", false, 1);
    for (int i = 0; i < BYTECODE_UPVALUE_WRITES; i++)
        out->upvalue_write[i] = probe(L, arena, writes[i], true, 0);
}

bool bytecode_writes_upvalue(const struct bytecode_opcodes *ops, uint32_t ins)
{
    for (int i = 0; i < BYTECODE_UPVALUE_WRITES; i++)
        if (BYTECODE_OP(ins) == ops->upvalue_write[i])
            return true;
    return false;
}
