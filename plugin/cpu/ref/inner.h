// ref/inner: what the files of the interpreter share.
//
// A machine runs one program. Its environment holds a slot per value of the
// module, by the value's number: functions do not call themselves, so one slot
// is enough, and regions see the values around them without further ado. A
// slot's memory is a counted buffer, or is borrowed (arguments, literals).
#ifndef CPU_REF_INNER_H
#define CPU_REF_INNER_H

#include <complex.h>
#include <string.h>

#include "base/alloc.h"
#include "hlo/module.h"
#include "hlo/number.h"
#include "hlo/ops.h"
#include "ref/ref.h"

enum {
  CPU_REF_RANK = 256,   // the most dimensions of a tensor
  CPU_REF_CHUNK = 256,  // elements that are loaded, computed and stored at once
  CPU_REF_KEPT = 8      // freed buffers that wait for their next use
};

#define CPU_REF_SHAPE(t) cx_hlo_shape(&(t)->type).s

// ---- machine ----

typedef struct cpu_ref_buffer {
  size_t refs;
  size_t bytes;    // of data
  size_t n_parts;  // a tuple's or future's: data holds slots
  size_t pad;
  unsigned char data[];
} cpu_ref_buffer;

typedef struct cpu_ref_slot {
  cpu_ref_tensor tensor;
  cpu_ref_buffer *buffer;  // NULL: borrowed, or empty
  bool lanes;              // of a region run on many scalars: one for each
} cpu_ref_slot;

typedef struct cpu_ref_machine {
  const cx_hlo_module *module;
  const cpu_ref_context *context;
  size_t first, n_env;     // the numbers of the values in env and last
  cpu_ref_slot *env;       // by a value's number - first
  const cx_hlo_op **last;  // the same: the value's last use in its block
  size_t used, limit;      // bytes
  size_t depth;            // of calls
  uint64_t rng[2];         // where the context has none
  cpu_ref_buffer *kept[CPU_REF_KEPT];
  size_t n_kept;
} cpu_ref_machine;

cpu_ref_machine cpu_ref_machine_of(const cx_hlo_module *module,
                                   const cpu_ref_context *context);
// The environment, before anything that has regions or calls is run.
calx_status *cpu_ref_machine_env(cpu_ref_machine *m) CALX_MUST_USE;
// The same with the values that some regions need alone: a compiler that folds
// n operations must not clear n times what all of them need.
calx_status *cpu_ref_machine_env_of(cpu_ref_machine *m,
                                    const cx_hlo_region *regions,
                                    size_t n_regions) CALX_MUST_USE;
// Notes the last uses in a block and the regions below.
void cpu_ref_note_uses(cpu_ref_machine *m, const cx_hlo_block *block);
// Frees what the machine has; returns the status.
calx_status *cpu_ref_machine_close(cpu_ref_machine *m,
                                   calx_status *status) CALX_MUST_USE;
calx_status *cpu_ref_interrupted(const cpu_ref_machine *m) CALX_MUST_USE;

// "gather: …"
calx_status *cpu_ref_bad(const cx_hlo_op *op, calx_code code,
                         const char *format, ...)
    CALX_PRINTF(3, 4) CALX_MUST_USE;

// ---- memory ----

// Bytes of a tensor; false: too many.
bool cpu_ref_bytes(const cx_hlo_type *type, size_t *out);
static inline size_t cpu_ref_count(const cpu_ref_tensor *t)
{
  const int64_t n = cx_hlo_type_elements(&t->type);
  return n < 0 ? 0 : (size_t)n;
}
// Element i.
static inline void *cpu_ref_at(const cpu_ref_tensor *t, size_t i)
{
  return (char *)t->data + i * cx_hlo_elem_bytes(t->type.elem);
}
// Sets all elements to zero; never fails.
calx_status *cpu_ref_zero(const cpu_ref_tensor *t) CALX_MUST_USE;
// Memory for a value of `op`, within the limit.
calx_status *cpu_ref_buffer_new(cpu_ref_machine *m, const cx_hlo_op *op,
                                const cx_hlo_type *type,
                                cpu_ref_buffer **out) CALX_MUST_USE;
void cpu_ref_buffer_release(cpu_ref_machine *m, cpu_ref_buffer *b);
void cpu_ref_slot_clear(cpu_ref_machine *m, cpu_ref_slot *s);
// Another reference to the same memory.
cpu_ref_slot cpu_ref_slot_share(const cpu_ref_slot *s);
static inline cpu_ref_slot *cpu_ref_slot_of(const cpu_ref_machine *m,
                                            const cx_hlo_value *v)
{
  return &m->env[v->number - m->first];
}
static inline const cx_hlo_op **cpu_ref_last_of(const cpu_ref_machine *m,
                                                const cx_hlo_value *v)
{
  return &m->last[v->number - m->first];
}

// ---- numbers ----

typedef enum cpu_ref_class {
  CPU_REF_INT,  // i1 too; ui64 as its bits
  CPU_REF_REAL,
  CPU_REF_COMPLEX
} cpu_ref_class;
cpu_ref_class cpu_ref_class_of(cx_hlo_elem e);

// One number of a class, and a chunk of them.
typedef union cpu_ref_number {
  double complex c;
  double r;
  int64_t i;
} cpu_ref_number;
typedef union cpu_ref_chunk {
  int64_t i[CPU_REF_CHUNK];
  double r[CPU_REF_CHUNK];
  double complex c[CPU_REF_CHUNK];
} cpu_ref_chunk;
size_t cpu_ref_number_bytes(cpu_ref_class class);

// re + i im, exactly: arithmetic with I would spoil infinities and -0.
static inline double complex cpu_ref_pair(double re, double im)
{
  const double parts[2] = { re, im };
  double complex z;
  memcpy(&z, parts, sizeof z);
  return z;
}

// n elements at p as numbers, from any type that has such (reals: from
// integers, rounded; complex: from reals), and back to a type of the class.
void cpu_ref_load_ints(cx_hlo_elem e, const void *p, size_t n, int64_t *out);
void cpu_ref_store_ints(cx_hlo_elem e, void *p, size_t n, const int64_t *v);
void cpu_ref_load_reals(cx_hlo_elem e, const void *p, size_t n, double *out);
void cpu_ref_store_reals(cx_hlo_elem e, void *p, size_t n, const double *v);
void cpu_ref_load_complex(cx_hlo_elem e, const void *p, size_t n,
                          double complex *out);
void cpu_ref_store_complex(cx_hlo_elem e, void *p, size_t n,
                           const double complex *v);
// The same by class.
void cpu_ref_load_numbers(cpu_ref_class class, cx_hlo_elem e, const void *p,
                          size_t n, void *out);
void cpu_ref_store_numbers(cpu_ref_class class, cx_hlo_elem e, void *p,
                           size_t n, const void *v);
// The operation `convert`, on n elements.
void cpu_ref_convert(cx_hlo_elem from, const void *p, cx_hlo_elem to, void *out,
                     size_t n);
int64_t cpu_ref_int_at(const cpu_ref_tensor *t, size_t i);
// An integer as an index; more than an i64 holds is the largest.
int64_t cpu_ref_index_at(const cpu_ref_tensor *t, size_t i);

// ---- elementwise ----

typedef struct cpu_ref_lane {
  cx_hlo_elem elem;
  const void *data;
  size_t step;  // 0: one element for all
} cpu_ref_lane;

bool cpu_ref_is_elementwise(cx_hlo_op_kind kind);
// Applies the operation to n elements of each operand.
void cpu_ref_element(const cx_hlo_op *op, const cpu_ref_lane *in,
                     cx_hlo_elem to, void *out, size_t n);
void cpu_ref_ints(cx_hlo_op_kind kind, cx_hlo_elem e, const int64_t *a,
                  const int64_t *b, int64_t *out, size_t n);
void cpu_ref_reals(cx_hlo_op_kind kind, const double *a, const double *b,
                   double *out, size_t n);
void cpu_ref_complexes(cx_hlo_op_kind kind, const double complex *a,
                       const double complex *b, double complex *out, size_t n);
// a op b for n numbers of type e; `out` may be a or b.
void cpu_ref_compute(cx_hlo_op_kind kind, cx_hlo_elem e, const void *a,
                     const void *b, void *out, size_t n);
// a before b as complex numbers are ordered: by real, then imaginary parts.
bool cpu_ref_complex_less(double complex a, double complex b);

// ---- strides ----

// Steps in elements, row-major.
void cpu_ref_strides(const cx_hlo_type *t, int64_t *out);
// Copies elements of `bytes` along `rank` dimensions of sizes `dims`; src and
// dst point at the first, steps are in elements.
void cpu_ref_copy(size_t bytes, size_t rank, const int64_t *dims, void *dst,
                  const int64_t *dst_step, const void *src,
                  const int64_t *src_step);
void cpu_ref_fill(size_t bytes, void *dst, size_t n, const void *element);
// Goes to the next index, the last dimension first; false: it was the last, and
// the index is the first again.
bool cpu_ref_next(size_t rank, const int64_t *dims, int64_t *at);

// ---- a running operation ----

typedef struct cpu_ref_call {
  cpu_ref_machine *machine;
  const cx_hlo_op *op;
  const cpu_ref_tensor *in, *out;  // operands; results, whose memory is there
} cpu_ref_call;

// Scratch memory of count elements, to be released as a buffer.
calx_status *cpu_ref_scratch(const cpu_ref_call *c, size_t count, size_t bytes,
                             cpu_ref_buffer **out) CALX_MUST_USE;
// Fills the result with elements of the first operand: from element `first` on,
// `step` elements apart along each dimension of the result.
void cpu_ref_copy_strided(const cpu_ref_call *c, int64_t first,
                          const int64_t *step);

// ---- regions on scalars ----

typedef struct cpu_ref_body {
  cpu_ref_machine *machine;
  const cx_hlo_block *block;
  bool lanes;    // all its operations are elementwise
  size_t width;  // lanes that fit
  cpu_ref_buffer *memory;
  // The one operation that is all of the body, applied to its two arguments;
  // OTHER: there is more to it. RETURN: it returns the second argument.
  cx_hlo_op_kind single;
} cpu_ref_body;

calx_status *cpu_ref_body_open(const cpu_ref_call *c,
                               const cx_hlo_region *region, size_t width,
                               cpu_ref_body *out) CALX_MUST_USE;
// n <= width elements of each argument and result.
calx_status *cpu_ref_body_run(cpu_ref_body *b, const void *const *args,
                              void *const *results, size_t n) CALX_MUST_USE;
void cpu_ref_body_close(cpu_ref_body *b);
// The same for result `i` of a body of several, of its own two arguments.
cx_hlo_op_kind cpu_ref_single(const cx_hlo_block *block, uint32_t i);
// Whether each result of the body of `op` is one operation of its arguments.
bool cpu_ref_all_single(const cx_hlo_op *op);
// Element type of the body's argument i.
static inline cx_hlo_elem cpu_ref_body_elem(const cpu_ref_body *b, size_t i)
{
  return b->block->args[i].type.tensor.elem;
}

// ---- folds: reduce and reduce_window ----

// Combines the elements of each result with a body, in their order, for many
// results at once.
typedef struct cpu_ref_fold {
  cpu_ref_body body;
  size_t n;  // inputs
  const cpu_ref_tensor *out;
  cpu_ref_buffer *memory;
  unsigned char *acc[2];    // two of each, since a body may exchange arguments
  unsigned char *elements;  // for cpu_ref_fold_load, as large as acc[0]
  unsigned char *inits;     // n x 16
  const void **args;        // 2n: accumulators, elements
  void **results;           // n
} cpu_ref_fold;

enum { CPU_REF_LANES_BYTES = 16 * CPU_REF_CHUNK };  // of one input in acc[0]

// Sets args[n + i] to the j-th elements of input i for the results [at, at +
// k); false: there are j of them.
typedef bool cpu_ref_fold_load(const cpu_ref_fold *f, void *user, size_t at,
                               size_t k, size_t j);

// To be closed on failure too.
calx_status *cpu_ref_fold_open(const cpu_ref_call *c,
                               cpu_ref_fold *out) CALX_MUST_USE;
calx_status *cpu_ref_fold_run(cpu_ref_fold *f, cpu_ref_fold_load *load,
                              void *user) CALX_MUST_USE;
void cpu_ref_fold_close(cpu_ref_fold *f);

// ---- running ----

// Runs the block, whose arguments' slots are set, and empties the slots of its
// values; out[i] is what it returns.
calx_status *cpu_ref_block(cpu_ref_machine *m, const cx_hlo_block *block,
                           cpu_ref_slot *out) CALX_MUST_USE;

// An operation on tensors.
typedef calx_status *cpu_ref_fn(const cpu_ref_call *c);
// Runs it on the operands of `op`; its results get memory.
calx_status *cpu_ref_run_fn(cpu_ref_machine *m, const cx_hlo_op *op,
                            cpu_ref_fn *fn) CALX_MUST_USE;
// An operation on slots: fills its results' own.
typedef calx_status *cpu_ref_control_fn(cpu_ref_machine *m,
                                        const cx_hlo_op *op);

// Whether there is such an operation on tensors, and its are plain ones.
calx_status *cpu_ref_check(const cx_hlo_op *op) CALX_MUST_USE;
calx_status *cpu_ref_check_type(const cx_hlo_op *op,
                                const cx_hlo_any *type) CALX_MUST_USE;
cpu_ref_fn *cpu_ref_fn_of(cx_hlo_op_kind kind);               // NULL: none
cpu_ref_control_fn *cpu_ref_control_of(cx_hlo_op_kind kind);  // NULL: none
bool cpu_ref_identity_call(const cx_hlo_op *op);  // @Sharding and its like
// Runs a custom call by the function that is registered for it.
calx_status *cpu_ref_handler_run(const cpu_ref_call *c) CALX_MUST_USE;

cpu_ref_fn cpu_ref_elementwise, cpu_ref_constant, cpu_ref_iota, cpu_ref_reshape,
    cpu_ref_bitcast, cpu_ref_broadcast_in_dim, cpu_ref_broadcast,
    cpu_ref_transpose, cpu_ref_slice, cpu_ref_concatenate, cpu_ref_pad,
    cpu_ref_reverse, cpu_ref_dimension_size, cpu_ref_set_dimension_size,
    cpu_ref_dynamic_slice, cpu_ref_dynamic_update_slice, cpu_ref_gather,
    cpu_ref_scatter, cpu_ref_index_select, cpu_ref_map, cpu_ref_reduce,
    cpu_ref_reduce_window, cpu_ref_select_and_scatter, cpu_ref_sort,
    cpu_ref_dot_general, cpu_ref_dot, cpu_ref_einsum, cpu_ref_unary_einsum,
    cpu_ref_convolution, cpu_ref_norm_training, cpu_ref_norm_grad,
    cpu_ref_norm_inference, cpu_ref_bit_generator, cpu_ref_rng, cpu_ref_fft,
    cpu_ref_cholesky, cpu_ref_triangular_solve, cpu_ref_collective,
    cpu_ref_device_id, cpu_ref_dynamic_reshape, cpu_ref_dynamic_broadcast,
    cpu_ref_dynamic_iota, cpu_ref_dynamic_pad, cpu_ref_real_dynamic_slice,
    cpu_ref_dynamic_conv, cpu_ref_dynamic_gather;

// ---- operations given as numbers, for the dynamic forms too ----

calx_status *cpu_ref_do_broadcast(const cpu_ref_call *c,
                                  cx_hlo_ints dimensions) CALX_MUST_USE;
// Arrays of the rank.
calx_status *cpu_ref_do_slice(const cpu_ref_call *c, const int64_t *start,
                              const int64_t *stride) CALX_MUST_USE;
calx_status *cpu_ref_do_pad(const cpu_ref_call *c, const int64_t *low,
                            const int64_t *interior) CALX_MUST_USE;
calx_status *cpu_ref_do_convolution(const cpu_ref_call *c,
                                    const int64_t *low) CALX_MUST_USE;
calx_status *cpu_ref_do_gather(const cpu_ref_call *c,
                               const int64_t *sizes) CALX_MUST_USE;
calx_status *cpu_ref_do_dot(const cpu_ref_call *c,
                            const cx_hlo_dot_numbers *d) CALX_MUST_USE;

// Element i of a list, or its default; side 0 of `padding` is low.
int64_t cpu_ref_list_at(const cx_hlo_op *op, cx_hlo_attr_id id, size_t i);
int64_t cpu_ref_padding_at(const cx_hlo_op *op, size_t i, size_t side);
bool cpu_ref_has(cx_hlo_ints list, int64_t v);

#endif
