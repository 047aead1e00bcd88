// hlo/build_op: the steps with which the functions of build.h make an
// operation.
//
// cx_hlo_build_begin() makes it, with its operands. The functions after it add
// attributes, declared result types and regions. cx_hlo_build_end() infers the
// result types and appends the operation to the block. After a failure, begin
// returns NULL and the others do nothing.
#ifndef CX_HLO_BUILD_OP_H
#define CX_HLO_BUILD_OP_H

#include "hlo/attr.h"
#include "hlo/build.h"

struct cx_hlo_builder {
  cx_hlo_module *module;
  cx_hlo_func *func;
  cx_hlo_block *block;  // where operations go
  calx_status *failed;  // the first failure
  const cx_hlo_loc *loc;
};

cx_hlo_op *cx_hlo_build_begin(cx_hlo_builder *b, cx_hlo_op_kind kind,
                              cx_hlo_value *const *operands, size_t n_operands,
                              size_t n_results, size_t n_regions);
// A NULL attribute means that there was no memory for it.
void cx_hlo_build_attr(cx_hlo_builder *b, cx_hlo_op *op, cx_hlo_attr_id id,
                       const cx_hlo_attr *attr);
void cx_hlo_build_int(cx_hlo_builder *b, cx_hlo_op *op, cx_hlo_attr_id id,
                      int64_t v);
void cx_hlo_build_ints(cx_hlo_builder *b, cx_hlo_op *op, cx_hlo_attr_id id,
                       const int64_t *v, size_t n);
// Declares the type of a result, for rules that read it. The sizes are copied.
void cx_hlo_build_declare(cx_hlo_builder *b, cx_hlo_op *op, size_t result,
                          const cx_hlo_type *type);
// A region whose arguments are scalars of these types. It returns the n_out
// values that the body writes.
void cx_hlo_build_body(cx_hlo_builder *b, cx_hlo_op *op, size_t region,
                       const cx_hlo_elem *args, size_t n_args, size_t n_out,
                       cx_hlo_body_fn *body, void *user);
// The same of arguments with the types of the operands.
void cx_hlo_build_like_operands(cx_hlo_builder *b, cx_hlo_op *op, size_t region,
                                size_t n_out, cx_hlo_body_fn *body, void *user);
// A body of one binary operation. `user` points to its kind.
cx_hlo_body_fn cx_hlo_build_one;
// The first result; NULL after a failure, or where there is none.
cx_hlo_value *cx_hlo_build_end(cx_hlo_builder *b, cx_hlo_op *op);

// Adds an attribute to a list. False: there is no memory, also where the
// attribute is NULL.
bool cx_hlo_add_named(cx_hlo_module *m, cx_hlo_named_list *list,
                      const char *name, const cx_hlo_attr *attr);

#endif
