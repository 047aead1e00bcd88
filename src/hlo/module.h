// hlo/module: a StableHLO program in memory.
//
// A module has functions, a function has one region, a region has blocks, and a
// block has operations in order. An operation defines values and may have
// regions. Everything is allocated in the arena of the module: pointers stay
// valid until cx_hlo_module_free(). ops.def says which operands, attributes and
// regions an operation has.
//
// Thread-compatible: many threads may read a module, or one may change it.
#ifndef CX_HLO_MODULE_H
#define CX_HLO_MODULE_H

#include "base/arena.h"
#include "base/status.h"
#include "hlo/types.h"

typedef enum cx_hlo_op_kind {
  CX_HLO_OP_OTHER = 0,  // of a dialect that ops.def does not know
#define CX_HLO_OP(id, ...) CX_HLO_OP_##id,
#include "hlo/ops.def"
  CX_HLO_OP_COUNT
} cx_hlo_op_kind;

// The attributes of all operations: CX_HLO_A_DIMENSIONS, …
typedef enum cx_hlo_attr_id {
#define CX_HLO_NAME(id, ...) CX_HLO_A_##id,
#include "hlo/ops.def"
  CX_HLO_A_COUNT
} cx_hlo_attr_id;

// Enumerations: CX_HLO_PRECISION, … Their values are indices into the names.
typedef enum cx_hlo_choice {
#define CX_HLO_CHOICE(id, ...) CX_HLO_##id,
#include "hlo/ops.def"
  CX_HLO_CHOICE_COUNT
} cx_hlo_choice;

// The values of CX_HLO_RNG_ALGORITHM.
enum { CX_HLO_RNG_DEFAULT, CX_HLO_RNG_THREE_FRY, CX_HLO_RNG_PHILOX };

typedef enum cx_hlo_struct {
#define CX_HLO_STRUCT(id, ...) CX_HLO_STRUCT_##id,
#include "hlo/ops.def"
  CX_HLO_STRUCT_COUNT
} cx_hlo_struct;

typedef struct cx_hlo_module cx_hlo_module;
typedef struct cx_hlo_func cx_hlo_func;
typedef struct cx_hlo_region cx_hlo_region;
typedef struct cx_hlo_block cx_hlo_block;
typedef struct cx_hlo_op cx_hlo_op;
typedef struct cx_hlo_value cx_hlo_value;
typedef struct cx_hlo_attr cx_hlo_attr;
typedef struct cx_hlo_non_tensor cx_hlo_non_tensor;

// Bytes in the arena, which may lack a terminating zero. The zero value is "".
typedef struct cx_hlo_str {
  const char *s;
  size_t n;
} cx_hlo_str;

typedef struct cx_hlo_ints {
  const int64_t *v;
  size_t n;
} cx_hlo_ints;

// A line of a source file; line 0: unknown.
typedef struct cx_hlo_loc {
  cx_hlo_str file;
  int64_t line;
  int64_t column;
} cx_hlo_loc;

// ---- types ----

// Any type. For tensors and tokens `non_tensor` is NULL. For other types it
// describes the type, and `tensor` is INVALID, except for ENCODED.
typedef struct cx_hlo_any {
  cx_hlo_type tensor;
  const cx_hlo_non_tensor *non_tensor;
} cx_hlo_any;

typedef enum cx_hlo_non_tensor_kind {
  CX_HLO_NON_TENSOR_TUPLE,     // tuple<parts>
  CX_HLO_NON_TENSOR_FUTURE,    // !stablehlo.future<parts>
  CX_HLO_NON_TENSOR_FUNCTION,  // (first n_inputs parts) -> (the others)
  CX_HLO_NON_TENSOR_ELEMENT,   // a bare element type: i32
  CX_HLO_NON_TENSOR_ENCODED,   // the tensor type, with `text` as its encoding
  CX_HLO_NON_TENSOR_TEXT       // any other, as its text
} cx_hlo_non_tensor_kind;

struct cx_hlo_non_tensor {
  cx_hlo_non_tensor_kind kind;
  cx_hlo_elem elem;  // ELEMENT
  const cx_hlo_any *parts;
  size_t n_parts;
  size_t n_inputs;
  cx_hlo_str text;
};

// ---- attributes ----

typedef enum cx_hlo_attr_kind {
  CX_HLO_ATTR_UNIT,
  CX_HLO_ATTR_BOOL,
  CX_HLO_ATTR_INT,    // as.integer, of type elem
  CX_HLO_ATTR_FLOAT,  // as.bits, of type elem
  CX_HLO_ATTR_STRING,
  CX_HLO_ATTR_SYMBOL,  // as.text without its @: "f", or "a::@b"
  CX_HLO_ATTR_TYPE,
  CX_HLO_ATTR_ELEMENTS,  // dense<…> : type
  CX_HLO_ATTR_ARRAY,     // array<elem: …> of integers or booleans
  CX_HLO_ATTR_LIST,      // [attributes]
  CX_HLO_ATTR_DICT,      // {names = attributes}
  CX_HLO_ATTR_CHOICE,    // #stablehlo<precision HIGH>
  CX_HLO_ATTR_STRUCT,    // #stablehlo.dot<…>: one of the structs below
  CX_HLO_ATTR_CONV,      // #stablehlo.conv<…>
  CX_HLO_ATTR_TEXT,      // any other, as its text
  // In ops.def only:
  CX_HLO_ATTR_MATRIX,  // ELEMENTS of type tensor<…x…xi64>
  CX_HLO_ATTR_ANY
} cx_hlo_attr_kind;

typedef struct cx_hlo_named {
  cx_hlo_str name;
  const cx_hlo_attr *attr;
} cx_hlo_named;

// The elements of a dense literal, row-major and little-endian. An element of
// i1 or of a 2- or 4-bit type has one byte, sign- or zero-extended. A splat has
// one element.
typedef struct cx_hlo_elements {
  cx_hlo_any type;
  const unsigned char *data;
  size_t size;  // bytes of data
  bool splat;
} cx_hlo_elements;

typedef struct cx_hlo_dot_numbers {
  cx_hlo_ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
} cx_hlo_dot_numbers;

typedef struct cx_hlo_gather_numbers {
  cx_hlo_ints offset, collapsed, operand_batch, indices_batch, index_map;
  int64_t index_vector_dim;
} cx_hlo_gather_numbers;

typedef struct cx_hlo_scatter_numbers {
  cx_hlo_ints window, inserted, operand_batch, indices_batch, index_map;
  int64_t index_vector_dim;
} cx_hlo_scatter_numbers;

typedef struct cx_hlo_channel {
  int64_t handle, type;
} cx_hlo_channel;

typedef struct cx_hlo_algorithm {
  int64_t lhs_type, rhs_type, accumulation;  // cx_hlo_elem
  int64_t lhs_components, rhs_components, operations, imprecise;
} cx_hlo_algorithm;

typedef struct cx_hlo_accuracy {
  double atol, rtol;
  int64_t ulps;
  int64_t mode;  // of CX_HLO_ACCURACY_MODE
} cx_hlo_accuracy;

typedef struct cx_hlo_output_alias {
  cx_hlo_ints output;
  int64_t operand;
  cx_hlo_ints operand_tuple;
} cx_hlo_output_alias;

// Which dimensions of a convolution are batch, feature and spatial dimensions.
typedef struct cx_hlo_conv_numbers {
  int64_t input_batch, input_feature;
  cx_hlo_ints input_spatial;
  int64_t kernel_input, kernel_output;
  cx_hlo_ints kernel_spatial;
  int64_t output_batch, output_feature;
  cx_hlo_ints output_spatial;
} cx_hlo_conv_numbers;

struct cx_hlo_attr {
  cx_hlo_attr_kind kind;
  cx_hlo_elem elem;  // INT, FLOAT, ARRAY
  int which;         // CHOICE: cx_hlo_choice; STRUCT: cx_hlo_struct
  union {
    bool flag;
    int64_t integer;  // CHOICE: the index of the value
    uint64_t bits;    // FLOAT
    cx_hlo_str text;
    cx_hlo_any type;
    cx_hlo_elements elements;
    cx_hlo_ints ints;
    struct {
      const cx_hlo_attr *const *items;
      size_t n;
    } list;
    struct {
      const cx_hlo_named *items;
      size_t n;
    } dict;
    const void *fields;  // STRUCT: the C struct that ops.def names
    const cx_hlo_conv_numbers *conv;
  } as;
};

// ---- the program ----

struct cx_hlo_value {
  cx_hlo_any type;
  cx_hlo_op *op;        // NULL: an argument of `block`
  cx_hlo_block *block;  // NULL: a result of `op`
  uint32_t index;       // which result or argument
  uint32_t number;      // unique in the module, below n_values
};

struct cx_hlo_op {
  cx_hlo_op_kind kind;
  uint32_t n_operands, n_results, n_regions, n_extra;
  cx_hlo_str name;  // OTHER: "dialect.name"; else empty
  cx_hlo_value **operands;
  cx_hlo_value *results;
  cx_hlo_region *regions;
  // One per attribute of the operation in ops.def, in its order; NULL: absent.
  const cx_hlo_attr **attrs;
  const cx_hlo_named *extra;  // attributes that ops.def does not name
  const cx_hlo_loc *loc;      // NULL: not known
  cx_hlo_op *next, *previous;
  cx_hlo_block *block;
};

struct cx_hlo_block {
  cx_hlo_value *args;
  size_t n_args;
  cx_hlo_op *first, *last;
  cx_hlo_block *next;
  cx_hlo_region *region;
};

struct cx_hlo_region {
  cx_hlo_block *first, *last;  // NULL: empty
  cx_hlo_op *op;               // NULL: the body of `func`
  cx_hlo_func *func;
};

typedef struct cx_hlo_named_list {
  const cx_hlo_named *items;
  size_t n;
} cx_hlo_named_list;

struct cx_hlo_func {
  cx_hlo_str name;
  cx_hlo_str visibility;  // "public", "private", "nested" or empty
  const cx_hlo_any *params;
  const cx_hlo_any *results;
  size_t n_params, n_results;
  cx_hlo_named_list *param_attrs;   // n_params; NULL: none has any
  cx_hlo_named_list *result_attrs;  // n_results; NULL: none has any
  cx_hlo_named_list attrs;
  cx_hlo_region body;  // empty: a declaration
  const cx_hlo_loc *loc;
  uint32_t index;  // in the module's list
  cx_hlo_func *next;
  cx_hlo_func *same_bucket;
};

struct cx_hlo_module {
  cx_arena arena;
  cx_hlo_str name;  // empty: none
  cx_hlo_named_list attrs;
  cx_hlo_block others;  // operations beside the functions: sdy.mesh
  cx_hlo_func *first, *last;
  uint32_t n_funcs;
  uint32_t n_values;
  cx_hlo_func **buckets;  // by name
  size_t n_buckets;
  const cx_hlo_loc *loc;
};

// ---- making: NULL means that there is no memory ----

cx_hlo_module *cx_hlo_module_new(void);
void cx_hlo_module_free(cx_hlo_module *m);  // NULL is accepted
cx_hlo_str cx_hlo_str_copy(cx_hlo_module *m, const char *s, size_t n);
const int64_t *cx_hlo_ints_copy(cx_hlo_module *m, const int64_t *v, size_t n);
// A function at the end of the module. The name is not copied.
cx_hlo_func *cx_hlo_func_new(cx_hlo_module *m, cx_hlo_str name);
// A block at the end of the region. The types of its arguments are to be filled
// in.
cx_hlo_block *cx_hlo_block_new(cx_hlo_module *m, cx_hlo_region *region,
                               size_t n_args);
// An operation in no block. Its types, operands and attributes are to be filled
// in.
cx_hlo_op *cx_hlo_op_new(cx_hlo_module *m, cx_hlo_op_kind kind,
                         size_t n_operands, size_t n_results, size_t n_regions);
void cx_hlo_op_append(cx_hlo_block *block, cx_hlo_op *op);

// ---- reading ----

// The types of the operands, then those of the results.
static inline size_t cx_hlo_op_n_types(const cx_hlo_op *op)
{
  return (size_t)op->n_operands + op->n_results;
}
static inline const cx_hlo_any *cx_hlo_op_type(const cx_hlo_op *op, size_t i)
{
  return i < op->n_operands ? &op->operands[i]->type
                            : &op->results[i - op->n_operands].type;
}
// Of a region that combines n values with n others: the commutative and
// associative operation that makes result i from both. NULL: it is made
// otherwise.
const cx_hlo_op *cx_hlo_block_combiner(const cx_hlo_block *block, size_t i);

// The first of this name.
cx_hlo_func *cx_hlo_func_find(const cx_hlo_module *m, cx_hlo_str name);
// `main`, or the only function; NULL: neither.
cx_hlo_func *cx_hlo_entry(const cx_hlo_module *m);
bool cx_hlo_str_equal(cx_hlo_str a, const char *s);
bool cx_hlo_str_same(cx_hlo_str a, cx_hlo_str b);
bool cx_hlo_any_equal(const cx_hlo_any *a, const cx_hlo_any *b);
// The last operation of the block; NULL where it is no return.
cx_hlo_op *cx_hlo_terminator(const cx_hlo_block *block);

// The attribute of this name in a list; NULL: there is none.
const cx_hlo_attr *cx_hlo_named_attr(const cx_hlo_named *items, size_t n,
                                     const char *name);
// An attribute of `op`; NULL: it is absent, or ops.def does not have it.
const cx_hlo_attr *cx_hlo_op_attr(const cx_hlo_op *op, cx_hlo_attr_id id);
// The value of an attribute; where it is absent, its default in ops.def.
int64_t cx_hlo_op_int(const cx_hlo_op *op, cx_hlo_attr_id id);
cx_hlo_ints cx_hlo_op_ints(const cx_hlo_op *op, cx_hlo_attr_id id);
const void *cx_hlo_op_struct(const cx_hlo_op *op, cx_hlo_attr_id id);
const cx_hlo_conv_numbers *cx_hlo_op_conv(const cx_hlo_op *op);
bool cx_hlo_op_flag(const cx_hlo_op *op, cx_hlo_attr_id id);
// The function that a call calls, or that decomposes a composite.
cx_hlo_str cx_hlo_op_callee(const cx_hlo_op *op);
// Element `i` of a literal of integers.
int64_t cx_hlo_elements_int(const cx_hlo_elements *e, size_t i);

#endif
