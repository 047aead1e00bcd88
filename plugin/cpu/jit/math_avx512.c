// jit/math_avx512: what AVX-512 has an instruction for: 16 floats as a table,
// of which each lane picks one.
#include "jit/math_parts.h"

#define LANES 16
#define CURRENT_ROUNDING 4

bool cpu_jit_has_avx512(const cpu_jit_ir *m)
{
  return m->env.has_avx512 && !m->wide &&
         (m->lanes == LANES || m->lanes == 2 * LANES || m->lanes == 4 * LANES);
}

// The lanes from `from` on of x and then y (which may be NULL), `count` of
// them.
static LLVMValueRef lanes_from(const cpu_jit_ir *m, LLVMValueRef x,
                               LLVMValueRef y, unsigned from, unsigned count)
{
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->env.context);
  LLVMValueRef order[128];
  for (unsigned i = 0; i < count; i++)
    order[i] = LLVMConstInt(i32, from + i, false);
  return LLVMBuildShuffleVector(m->b, x, y ? y : LLVMGetPoison(LLVMTypeOf(x)),
                                LLVMConstVector(order, count), "");
}

// An instruction on 16 lanes of x and y.
typedef LLVMValueRef instruction(const cpu_jit_ir *m, LLVMValueRef x,
                                 LLVMValueRef y);

// The same on all lanes. x may have 16 lanes for all of them.
static LLVMValueRef on_each(const cpu_jit_ir *m, instruction *fn,
                            LLVMValueRef x, LLVMValueRef y)
{
  if (m->lanes == LANES) return fn(m, x, y);
  const bool once = LLVMGetVectorSize(LLVMTypeOf(x)) == LANES;
  const unsigned n = (unsigned)m->lanes / LANES;
  LLVMValueRef part[4];
  for (unsigned i = 0; i < n; i++) {
    part[i] = fn(m, once ? x : lanes_from(m, x, NULL, i * LANES, LANES),
                 lanes_from(m, y, NULL, i * LANES, LANES));
  }
  for (unsigned width = LANES, k = n; k > 1; k /= 2, width *= 2) {
    for (unsigned i = 0; i < k / 2; i++) {
      part[i] = lanes_from(m, part[2 * i], part[2 * i + 1], 0, 2 * width);
    }
  }
  return part[0];
}

static LLVMValueRef pick(const cpu_jit_ir *m, LLVMValueRef table,
                         LLVMValueRef index)
{
  LLVMValueRef all[] = { table, index };
  return cpu_jit_intrinsic(m->env.module, m->b,
                           "llvm.x86.avx512.permvar.sf.512", NULL, 0, all, 2);
}

static LLVMValueRef scalef(const cpu_jit_ir *m, LLVMValueRef x, LLVMValueRef n)
{
  LLVMContextRef c = m->env.context;
  LLVMValueRef all[] = { x, n, x, LLVMConstAllOnes(LLVMInt16TypeInContext(c)),
                         LLVMConstInt(LLVMInt32TypeInContext(c),
                                      CURRENT_ROUNDING, false) };
  return cpu_jit_intrinsic(m->env.module, m->b,
                           "llvm.x86.avx512.mask.scalef.ps.512", NULL, 0, all,
                           5);
}

LLVMValueRef cpu_jit_scale(const cpu_jit_ir *m, LLVMValueRef x, LLVMValueRef n)
{
  return on_each(m, scalef, x, n);
}

// The element of the table that the low four bits of each index name.
static LLVMValueRef look_up(const cpu_jit_ir *m, const double table[LANES],
                            LLVMValueRef index)
{
  LLVMTypeRef f32 = LLVMFloatTypeInContext(m->env.context);
  LLVMValueRef values[LANES];
  for (unsigned i = 0; i < LANES; i++) values[i] = LLVMConstReal(f32, table[i]);
  return on_each(m, pick, LLVMConstVector(values, LANES), index);
}

LLVMValueRef cpu_jit_in_pieces(const cpu_jit_ir *m, const cpu_jit_pieces *f,
                               LLVMValueRef x)
{
  LLVMValueRef a = at_most(m, absolute(m, x), num(m, f->most));
  LLVMValueRef u = add(m, a, num(m, f->offset));
  LLVMValueRef piece = right(m, as_bits(m, u), 21);
  LLVMValueRef s = sub(m, a, look_up(m, f->center, piece));
  LLVMValueRef sum = look_up(m, f->terms[f->degree], piece);
  for (int k = f->degree - 1; k > 0; k--)
    sum = mad(m, sum, s, look_up(m, f->terms[k], piece));
  LLVMValueRef is_first = less(m, u, num(m, 1.25 * f->offset));
  LLVMValueRef first = choose(m, is_first, a, look_up(m, f->terms[0], piece));
  sum = mad(m, sum, s, first);
  return with_sign(m, sum, x);
}
