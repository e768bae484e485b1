/*
 * The bytecode of such a loop: the global pairs in a register, its argument in
 * the next ones, a call with three results, and directly after it the jump to
 * the step of a loop whose control variables are the results.
 */
#include "sandbox/iterator_check.h"

#define ARGUMENT_MAX 12u /* instructions of the argument; a longer one is not followed */
#define CONTROL_VARS 3u  /* the iterator, the table, the position */

static bool is_loop_call(const struct bytecode_opcodes *ops, const struct bytecode *code, uint32_t i,
                         uint32_t base)
{
    if (i + 1 >= code->count || bytecode_b(code->at[i]) != CONTROL_VARS + 1)
        return false;
    uint32_t begin = code->at[i + 1], step = i + 2 + bytecode_d(begin) - BYTECODE_JUMP_BIAS;
    for (int kind = 0; kind < 2; kind++)
        if (bytecode_op(begin) == ops->loop_begin[kind] && bytecode_a(begin) == base + CONTROL_VARS &&
            step < code->count && bytecode_op(code->at[step]) == ops->loop_step[kind] &&
            bytecode_a(code->at[step]) == base + CONTROL_VARS)
            return true;
    return false;
}

/* Whether the instruction may read or write the register. */
static bool touches(const struct bytecode_opcodes *ops, uint32_t ins, uint32_t base)
{
    uint32_t op = bytecode_op(ins);
    if (bytecode_a(ins) <= base)
        return true;
    if (op == ops->global_read || op == ops->upvalue_read)
        return false;
    return bytecode_b(ins) == base || (op != ops->field_read && bytecode_c(ins) == base);
}

/* The function is in register `base` after instruction `i`. */
static bool is_loop(const struct bytecode_opcodes *ops, const struct bytecode *code, uint32_t i,
                    uint32_t base)
{
    for (uint32_t at = i + 1; at < code->count && at < i + ARGUMENT_MAX; at++)
        if (bytecode_op(code->at[at]) == ops->call && bytecode_a(code->at[at]) == base)
            return is_loop_call(ops, code, at, base);
        else if (touches(ops, code->at[at], base))
            return false;
    return false;
}

bool iterator_check_passes(const struct bytecode_opcodes *ops, const struct bytecode *code)
{
    for (uint32_t i = 0; i < code->count; i++) {
        struct str name = bytecode_text(code, bytecode_d(code->at[i]));
        if (bytecode_op(code->at[i]) == ops->global_read &&
            (str_is(name, "pairs") || str_is(name, "ipairs")) &&
            !is_loop(ops, code, i, bytecode_a(code->at[i])))
            return false;
    }
    for (uint32_t i = 0; i < code->constant_count; i++)
        if (code->constants[i].function && !iterator_check_passes(ops, code->constants[i].function))
            return false;
    return true;
}
