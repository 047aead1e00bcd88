// abi: the declarations of src/abi have the sizes and offsets that the
// interface's own numbers (abi.def) say, field by field.
#include "test.h"

#include "abi/pjrt.h"

typedef struct number {
  const char *type;
  const char *field;  // NULL: the struct itself
  size_t found[2], wanted[2];
} number;

#define CX_ABI_STRUCT(type, size, struct_size) \
  { #type, NULL, { sizeof(type), 0 }, { size, 0 } },
#define CX_ABI_FIELD(type, field, offset, bytes)           \
  { #type,                                                 \
    #field,                                                \
    { offsetof(type, field), sizeof(((type *)0)->field) }, \
    { offset, bytes } },
static const number numbers[] = {
#include "abi.def"
};
#undef CX_ABI_STRUCT
#undef CX_ABI_FIELD
