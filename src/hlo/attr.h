// hlo/attr: making attributes. All live in the module's arena, copy what they
// are given, and return NULL when there is no memory.
#ifndef CX_HLO_ATTR_H
#define CX_HLO_ATTR_H

#include "hlo/module.h"

const cx_hlo_attr *cx_hlo_attr_unit(cx_hlo_module *m);
const cx_hlo_attr *cx_hlo_attr_bool(cx_hlo_module *m, bool v);
const cx_hlo_attr *cx_hlo_attr_int(cx_hlo_module *m, cx_hlo_elem elem,
                                   int64_t v);
const cx_hlo_attr *cx_hlo_attr_ints(cx_hlo_module *m, cx_hlo_elem elem,
                                    const int64_t *v, size_t n);
const cx_hlo_attr *cx_hlo_attr_choice(cx_hlo_module *m, cx_hlo_choice family,
                                      int64_t value);
// `fields` is the C struct of ops.def; its lists are copied too.
const cx_hlo_attr *cx_hlo_attr_struct(cx_hlo_module *m, cx_hlo_struct which,
                                      const void *fields);
const cx_hlo_attr *cx_hlo_attr_conv(cx_hlo_module *m,
                                    const cx_hlo_conv_numbers *conv);
// dense<…> : tensor<rows x columns x i64>
const cx_hlo_attr *cx_hlo_attr_matrix(cx_hlo_module *m, const int64_t *v,
                                      size_t rows, size_t columns);
// `size` bytes of elements as cx_hlo_elements keeps them, for all elements or
// for one (a splat); equal ones become a splat. The type's sizes are copied.
const cx_hlo_attr *cx_hlo_attr_elements(cx_hlo_module *m,
                                        const cx_hlo_type *type,
                                        const void *data, size_t size);

#endif
