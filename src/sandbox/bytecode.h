/* The bytecode of a function: instructions with their lines, constants and upvalues. Read from LuaJIT's dump
 * of code that was just compiled from source; a policy cannot supply bytecode. LuaJIT's jit.util cannot
 * replace it: it does not report whether an upvalue is a local of the enclosing function, which freeze.c
 * needs. */
#ifndef TOOLGATE_SANDBOX_BYTECODE_H
#define TOOLGATE_SANDBOX_BYTECODE_H

#include "base/str.h"

#include <lua.h>

struct arena;

/* A flag in `upvalues`: a local of the enclosing function, else one of its upvalues; the low byte is its
 * index. */
#define BYTECODE_UPVALUE_LOCAL 0x8000u

#define BYTECODE_JUMP_BIAS 0x8000u /* the operand for a jump to the next instruction */

struct bytecode {
    const uint32_t *at; /* instructions */
    uint32_t count;
    uint32_t first_line;
    uint8_t parameters;
    const uint16_t *upvalues;
    const struct str *upvalue_names;
    uint32_t upvalue_count;
    const struct bytecode_constant *constants;
    uint32_t constant_count;
    const unsigned char *lines; /* `line_width` bytes for each instruction, relative to first_line */
    uint32_t line_width;
};

/* A string, an inner function, or anything else: then both are empty. */
struct bytecode_constant {
    struct str text;
    const struct bytecode *function;
};

/* Of the Lua function at `at`, allocated in `arena`. Raises an error if the format of the dump is unknown. */
const struct bytecode *bytecode_read(lua_State *L, int at, struct arena *arena);
int bytecode_line(const struct bytecode *code, uint32_t i);

/* The fields of an instruction. */
#define BYTECODE_OP(ins) ((ins)&0xff)
#define BYTECODE_A(ins)  ((ins) >> 8 & 0xff)
#define BYTECODE_B(ins)  ((ins) >> 24)
#define BYTECODE_C(ins)  ((ins) >> 16 & 0xff)
#define BYTECODE_D(ins)  ((ins) >> 16)

/* The string constant, or STR_NONE. */
struct str bytecode_text(const struct bytecode *code, uint32_t constant);

/* Opcodes that the checks need. They differ between versions of LuaJIT, so each state detects them by
 * compiling small functions. */
#define BYTECODE_UPVALUE_WRITES 4 /* of a variable, a string, a number, nil or a boolean */
struct bytecode_opcodes {
    uint8_t global_read, global_write, field_read, field_write, key_write, index_write, set_nil, copy;
    uint8_t no_register[3]; /* whose operand A, always 0, names none */
    uint8_t upvalue_write[BYTECODE_UPVALUE_WRITES];
};
void bytecode_detect_opcodes(lua_State *L, struct arena *arena, struct bytecode_opcodes *out);
bool bytecode_writes_upvalue(const struct bytecode_opcodes *ops, uint32_t ins);

#endif
