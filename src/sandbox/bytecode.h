/*
 * What a function was compiled to: its instructions with their lines, the
 * names it uses and which variables of the functions around it. Read from
 * LuaJIT's own dump of code that we have just compiled from text; a policy has
 * no way to hand in bytecode. Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_BYTECODE_H
#define TOOLGATE_SANDBOX_BYTECODE_H

#include "base/str.h"

#include <lua.h>

struct arena;

#define BYTECODE_UPVALUE_LOCAL                                                                               \
    0x8000u /* in `outer`: a local of the function around, else one that it has itself */

#define BYTECODE_JUMP_BIAS 0x8000u /* what stands for no distance, from the next instruction */

struct bytecode {
    const uint32_t *at; /* instructions */
    uint32_t count;
    uint32_t first_line;
    uint8_t parameters;
    const uint16_t *outer; /* the variables of outer functions that it uses: where each comes from */
    const struct str *outer_names;
    uint32_t outer_count;
    const struct bytecode_constant *constants;
    uint32_t constant_count;
    const unsigned char *lines; /* `line_width` bytes an instruction, counted from first_line */
    uint32_t line_width;
};

/* A text, a function inside of this one, or something else: then both are empty. */
struct bytecode_constant {
    struct str text;
    const struct bytecode *function;
};

/* The Lua function at `at`. Texts live in `arena`. Raises an error where the dump is not of the form we know.
 */
const struct bytecode *bytecode_read(lua_State *L, int at, struct arena *arena);
int bytecode_line(const struct bytecode *code, uint32_t i);

/* The parts of an instruction. */
static inline uint32_t bytecode_op(uint32_t ins)
{
    return ins & 0xff;
}

static inline uint32_t bytecode_a(uint32_t ins)
{
    return ins >> 8 & 0xff;
}

static inline uint32_t bytecode_b(uint32_t ins)
{
    return ins >> 24;
}

static inline uint32_t bytecode_c(uint32_t ins)
{
    return ins >> 16 & 0xff;
}

static inline uint32_t bytecode_d(uint32_t ins)
{
    return ins >> 16;
}

/* The constant's text, or STR_NONE. */
struct str bytecode_text(const struct bytecode *code, uint32_t constant);

/* Numbers of the instructions that are looked for; they differ between versions of LuaJIT, so each state
 * learns them from small functions that must contain them. */
#define BYTECODE_UPVALUE_WRITES 4 /* a variable, a text, a number, nil or a boolean */
struct bytecode_opcodes {
    uint8_t global_read, global_write, field_read, field_write, outer_read, nothing, call;
    uint8_t loop_begin[2], loop_step[2]; /* of pairs, and of other iterators */
    uint8_t outer_write[BYTECODE_UPVALUE_WRITES];
};
void bytecode_detect_opcodes(lua_State *L, struct arena *arena, struct bytecode_opcodes *out);
bool bytecode_writes_upvalue(const struct bytecode_opcodes *ops, uint32_t ins);

#endif
