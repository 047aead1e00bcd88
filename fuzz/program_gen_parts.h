// fuzz/program_gen_parts: what the files of the generator share.
#ifndef CX_FUZZ_PROGRAM_GEN_PARTS_H
#define CX_FUZZ_PROGRAM_GEN_PARTS_H

#include "hlo/build.h"
#include "hlo/build_op.h"
#include "hlo/ops.h"

enum { GEN_VALUES = 256, GEN_RANK = 6, GEN_ELEMENTS = 600 };

// What is known of a value's elements. Exact: error is 0. Integers and i1 are
// always exact.
typedef struct gen_facts {
  double magnitude, error;
  bool finite;    // no NaN and no infinity
  bool integral;  // exact whole numbers
} gen_facts;

typedef struct gen_value {
  cx_hlo_value *v;
  gen_facts f;
} gen_value;

typedef struct gen {
  cx_hlo_builder *b;
  uint64_t state;
  gen_value pool[GEN_VALUES];
  size_t n;
  int functions;  // made so far
  bool portable;
} gen;

typedef struct gen_dims {
  int64_t d[GEN_RANK];
  size_t rank;
} gen_dims;

// ---- choices ----
uint64_t gen_random(gen *g);
size_t gen_below(gen *g, size_t n);                    // [0, n)
int64_t gen_range(gen *g, int64_t low, int64_t high);  // both included
bool gen_chance(gen *g, int percent);
gen_dims gen_shape(gen *g, size_t max_rank);
// `n` of [0, of) in rising order.
void gen_subset(gen *g, size_t of, size_t n, int64_t *out);
void gen_permutation(gen *g, size_t n, int64_t *out);

// ---- facts ----
double gen_epsilon(cx_hlo_elem e);
gen_facts gen_both(const gen_facts *a, const gen_facts *b);  // either's values
// After arithmetic with these bounds: adds its rounding; false: too large to
// be worth comparing. `keeps`: whole numbers stay whole.
bool gen_rounded(cx_hlo_elem e, bool keeps, gen_facts *f);
// Sums of n of these.
bool gen_summed(cx_hlo_elem e, int64_t n, gen_facts *f);

// ---- values ----
#define GEN_ANY                                                      \
  (CX_HLO_CLASS_BOOL | CX_HLO_CLASS_SIGNED | CX_HLO_CLASS_UNSIGNED | \
   CX_HLO_CLASS_FLOAT)
#define GEN_NUMBER \
  (CX_HLO_CLASS_SIGNED | CX_HLO_CLASS_UNSIGNED | CX_HLO_CLASS_FLOAT)
#define GEN_INTEGER (CX_HLO_CLASS_SIGNED | CX_HLO_CLASS_UNSIGNED)

typedef struct gen_want {
  unsigned classes;
  size_t min_rank;
  bool exact, finite, full;  // full: no dimension of 0
} gen_want;

cx_hlo_elem gen_elem(gen *g, unsigned classes);
// Elements of this type, random; writes what is known of them.
void gen_fill(gen *g, const cx_hlo_type *t, unsigned char *out, gen_facts *f);
gen_value gen_literal(gen *g, const cx_hlo_type *t);
gen_value gen_pick(gen *g, gen_want want);
// Some value of exactly this type.
gen_value gen_like(gen *g, const cx_hlo_type *t, bool finite);
const cx_hlo_type *gen_type(gen_value v);
bool gen_push(gen *g, cx_hlo_value *v, gen_facts f);

// ---- regions with tensors as arguments ----
cx_hlo_block *gen_region_open(gen *g, cx_hlo_op *op, size_t region,
                              const cx_hlo_value *const *like, size_t n,
                              cx_hlo_block **out_outside);
void gen_region_close(gen *g, cx_hlo_value *const *results, size_t n,
                      cx_hlo_block *outside);

// ---- operations: false, and nothing done, where what was picked will not do
typedef bool gen_op(gen *g);
gen_op gen_unary_float, gen_unary_exact, gen_unary_integer, gen_binary,
    gen_bitwise, gen_guarded, gen_compare_select, gen_convert_one,
    gen_clamp_one, gen_bitcast;
gen_op gen_reshape_one, gen_broadcast, gen_transpose_one, gen_slice_one,
    gen_pad_one, gen_concat, gen_reverse_one, gen_iota_one, gen_dynamic_slice,
    gen_dynamic_update;
gen_op gen_reduce_one, gen_reduce_pair, gen_window, gen_select_scatter, gen_dot,
    gen_conv, gen_gather_one, gen_scatter_one, gen_sort_one;
gen_op gen_while_one, gen_nest, gen_if_one, gen_case_one, gen_call_one,
    gen_barrier, gen_random_bits;

#endif
