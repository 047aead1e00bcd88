// hlo/attr: makes attributes. They live in the module's arena and copy their
// arguments. NULL means that there is no memory.
#ifndef CX_HLO_ATTR_H
#define CX_HLO_ATTR_H

#include "hlo/module.h"

// The value of the attribute is to be filled in.
cx_hlo_attr *cx_hlo_attr_new(cx_hlo_module *m, cx_hlo_attr_kind kind);
// STRING, TEXT or SYMBOL.
const cx_hlo_attr *cx_hlo_attr_text(cx_hlo_module *m, cx_hlo_attr_kind kind,
                                    const void *text, size_t n);
const cx_hlo_attr *cx_hlo_attr_unit(cx_hlo_module *m);
const cx_hlo_attr *cx_hlo_attr_bool(cx_hlo_module *m, bool v);
const cx_hlo_attr *cx_hlo_attr_int(cx_hlo_module *m, cx_hlo_elem elem,
                                   int64_t v);
const cx_hlo_attr *cx_hlo_attr_ints(cx_hlo_module *m, cx_hlo_elem elem,
                                    const int64_t *v, size_t n);
const cx_hlo_attr *cx_hlo_attr_choice(cx_hlo_module *m, cx_hlo_choice family,
                                      int64_t value);
// `fields` is the C struct that ops.def names. Its lists are copied too.
const cx_hlo_attr *cx_hlo_attr_struct(cx_hlo_module *m, cx_hlo_struct which,
                                      const void *fields);
const cx_hlo_attr *cx_hlo_attr_conv(cx_hlo_module *m,
                                    const cx_hlo_conv_numbers *conv);
// dense<…> : tensor<rows x columns x i64>
const cx_hlo_attr *cx_hlo_attr_matrix(cx_hlo_module *m, const int64_t *v,
                                      size_t rows, size_t columns);
// `data` has `size` bytes: all elements as cx_hlo_elements keeps them, or one
// element, which makes a splat. Equal elements become a splat. The sizes of the
// type are copied.
const cx_hlo_attr *cx_hlo_attr_elements(cx_hlo_module *m,
                                        const cx_hlo_type *type,
                                        const void *data, size_t size);

#endif
