// pjrt/shape: element types of the interface, what they are to calx, and the
// shapes that the checks compare. Types below a byte take one byte each on the
// host.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

typedef struct type_fact {
  const char *name;
  size_t bytes;
  calx_dtype dtype;
  int since;  // the minor version that brought it; 0: the oldest we speak to
} type_fact;

static const type_fact types[CX_PJRT_TYPES] = {
  [PJRT_Buffer_Type_PRED] = { "bool", 1, CALX_BOOL, 0 },
  [PJRT_Buffer_Type_S8] = { "i8", 1, CALX_I8, 0 },
  [PJRT_Buffer_Type_S16] = { "i16", 2, CALX_I16, 0 },
  [PJRT_Buffer_Type_S32] = { "i32", 4, CALX_I32, 0 },
  [PJRT_Buffer_Type_S64] = { "i64", 8, CALX_I64, 0 },
  [PJRT_Buffer_Type_U8] = { "u8", 1, CALX_U8, 0 },
  [PJRT_Buffer_Type_U16] = { "u16", 2, CALX_U16, 0 },
  [PJRT_Buffer_Type_U32] = { "u32", 4, CALX_U32, 0 },
  [PJRT_Buffer_Type_U64] = { "u64", 8, CALX_U64, 0 },
  [PJRT_Buffer_Type_F16] = { "f16", 2, CALX_F16, 0 },
  [PJRT_Buffer_Type_F32] = { "f32", 4, CALX_F32, 0 },
  [PJRT_Buffer_Type_F64] = { "f64", 8, CALX_F64, 0 },
  [PJRT_Buffer_Type_BF16] = { "bf16", 2, CALX_BF16, 0 },
  [PJRT_Buffer_Type_C64] = { "c64", 8, CALX_C64, 0 },
  [PJRT_Buffer_Type_C128] = { "c128", 16, CALX_C128, 0 },
  [PJRT_Buffer_Type_F8E5M2] = { "f8e5m2", 1, CALX_DTYPE_DEFAULT, 0 },
  [PJRT_Buffer_Type_F8E4M3FN] = { "f8e4m3fn", 1, CALX_DTYPE_DEFAULT, 0 },
  [PJRT_Buffer_Type_F8E4M3B11FNUZ] = { "f8e4m3b11fnuz", 1, CALX_DTYPE_DEFAULT,
                                       0 },
  [PJRT_Buffer_Type_F8E5M2FNUZ] = { "f8e5m2fnuz", 1, CALX_DTYPE_DEFAULT, 0 },
  [PJRT_Buffer_Type_F8E4M3FNUZ] = { "f8e4m3fnuz", 1, CALX_DTYPE_DEFAULT, 0 },
  [PJRT_Buffer_Type_S4] = { "i4", 1, CALX_DTYPE_DEFAULT, 0 },
  [PJRT_Buffer_Type_U4] = { "u4", 1, CALX_DTYPE_DEFAULT, 0 },
  [PJRT_Buffer_Type_TOKEN] = { "token", 0, CALX_DTYPE_DEFAULT, 50 },
  [PJRT_Buffer_Type_S2] = { "i2", 1, CALX_DTYPE_DEFAULT, 53 },
  [PJRT_Buffer_Type_U2] = { "u2", 1, CALX_DTYPE_DEFAULT, 53 },
  [PJRT_Buffer_Type_F8E4M3] = { "f8e4m3", 1, CALX_DTYPE_DEFAULT, 55 },
  [PJRT_Buffer_Type_F8E3M4] = { "f8e3m4", 1, CALX_DTYPE_DEFAULT, 55 },
  [PJRT_Buffer_Type_F8E8M0FNU] = { "f8e8m0fnu", 1, CALX_DTYPE_DEFAULT, 63 },
  [PJRT_Buffer_Type_F4E2M1FN] = { "f4e2m1fn", 1, CALX_DTYPE_DEFAULT, 63 },
  [PJRT_Buffer_Type_S1] = { "i1", 1, CALX_DTYPE_DEFAULT, 94 },
  [PJRT_Buffer_Type_U1] = { "u1", 1, CALX_DTYPE_DEFAULT, 94 },
  [PJRT_Buffer_Type_F6E2M3FN] = { "f6e2m3fn", 1, CALX_DTYPE_DEFAULT, 114 },
  [PJRT_Buffer_Type_F6E3M2FN] = { "f6e3m2fn", 1, CALX_DTYPE_DEFAULT, 114 },
};

static bool known(int type)
{
  return type > 0 && type < (int)CX_PJRT_TYPES && types[type].name != NULL;
}

const char *cx_pjrt_type_name(int type)
{
  return known(type) ? types[type].name : "?";
}

size_t cx_pjrt_type_bytes(int type)
{
  return known(type) ? types[type].bytes : 0;
}

calx_status *cx_pjrt_check_type(const cx_pjrt_plugin *p, int type)
{
  int minor = p->api->pjrt_api_version.minor_version;
  if (known(type) && types[type].since <= minor) return NULL;
  return cx_error(CALX_UNIMPLEMENTED,
                  "plugin '%s' (PJRT %d.%d) does not know the type %s (%d)",
                  p->name, p->api->pjrt_api_version.major_version, minor,
                  cx_pjrt_type_name(type), type);
}

int cx_pjrt_type_of(calx_dtype d)
{
  for (int type = 1; type < (int)CX_PJRT_TYPES; type++) {
    if (d != CALX_DTYPE_DEFAULT && types[type].dtype == d) return type;
  }
  return PJRT_Buffer_Type_INVALID;
}

calx_dtype cx_pjrt_dtype_of(int type)
{
  return known(type) ? types[type].dtype : CALX_DTYPE_DEFAULT;
}

bool cx_pjrt_shape_make(calx_dtype d, const int64_t *dims, size_t rank,
                        cx_pjrt_shape *out)
{
  if (rank > CALX_MAX_RANK) return false;
  *out = (cx_pjrt_shape){ .type = cx_pjrt_type_of(d), .rank = rank };
  if (rank > 0) memcpy(out->dims, dims, rank * sizeof *dims);
  return true;
}

bool cx_pjrt_shape_equal(const cx_pjrt_shape *a, const cx_pjrt_shape *b)
{
  if (a->type != b->type || a->rank != b->rank) return false;
  for (size_t i = 0; i < a->rank; i++) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

const char *cx_pjrt_shape_str(const cx_pjrt_shape *shape,
                              cx_pjrt_shape_text *out)
{
  size_t rank = shape->rank < CALX_MAX_RANK ? shape->rank : CALX_MAX_RANK;
  size_t n = (size_t)snprintf(out->s, sizeof out->s, "%s[",
                              cx_pjrt_type_name(shape->type));
  for (size_t i = 0; i < rank; i++) {
    n += (size_t)snprintf(out->s + n, sizeof out->s - n, "%s%" PRId64,
                          i > 0 ? "," : "", shape->dims[i]);
  }
  snprintf(out->s + n, sizeof out->s - n, "]");
  return out->s;
}

calx_status *cx_pjrt_shape_bytes(const cx_pjrt_shape *shape, size_t *out_bytes)
{
  *out_bytes = 0;
  if (shape->rank > CALX_MAX_RANK) {
    return cx_invalid("a shape has at most %d dimensions, found %zu",
                      CALX_MAX_RANK, shape->rank);
  }
  size_t bytes = cx_pjrt_type_bytes(shape->type);
  bool fits = bytes > 0;
  bool empty = false;
  for (size_t i = 0; i < shape->rank; i++) {
    if (shape->dims[i] < 0) fits = false;
    if (shape->dims[i] == 0) empty = true;
  }
  for (size_t i = 0; i < shape->rank && fits && !empty; i++) {
    fits = cx_mul_size(bytes, (size_t)shape->dims[i], &bytes);
  }
  if (!fits || bytes > (size_t)INT64_MAX) {
    cx_pjrt_shape_text text;
    return cx_invalid("%s has no host data", cx_pjrt_shape_str(shape, &text));
  }
  *out_bytes = empty ? 0 : bytes;
  return NULL;
}
