// train/host_copy: a copy of a value with its tensors on the host.
#include "base/alloc.h"
#include "lazy/lazy.h"
#include "profiler/profiler.h"
#include "train/internal.h"

static calx_value *copy_tensor(calx_tensor *t)
{
  if (!calx_tensor_is_host(t)) cx_profiler_own_read();  // no habit of a step
  return calx_value_tensor(calx_cpu(t));
}

static calx_status *copy_item(const calx_value *from, size_t i, calx_value *to)
{
  calx_value *item;
  CALX_TRY(cx_train_copy_value(calx_value_item(from, i), &item));
  if (calx_value_kind(from) != CALX_KIND_DICT) {
    return calx_value_append(to, item);
  }
  const char *key = calx_value_key(from, i);
  return key != NULL
             ? calx_value_set(to, key, item)
             : calx_value_set_at(to, calx_value_key_number(from, i), item);
}

calx_status *cx_train_copy_value(const calx_value *v, calx_value **out)
{
  const calx_kind kind = calx_value_kind(v);
  switch (kind) {
    case CALX_KIND_NONE: *out = calx_value_none(); break;
    case CALX_KIND_BOOL: *out = calx_value_bool(calx_value_as_bool(v)); break;
    case CALX_KIND_INT: *out = calx_value_int(calx_value_as_int(v)); break;
    case CALX_KIND_FLOAT:
      *out = calx_value_float(calx_value_as_float(v));
      break;
    case CALX_KIND_STRING:
      *out = calx_value_string(calx_value_as_string(v));
      break;
    case CALX_KIND_BYTES:
      *out = calx_value_bytes(calx_value_as_string(v), calx_value_count(v));
      break;
    case CALX_KIND_TENSOR: *out = copy_tensor(calx_value_as_tensor(v)); break;
    default: *out = calx_value_container(kind);
  }
  if (*out == NULL) return cx_out_of_memory();
  const bool is_container = kind >= CALX_KIND_LIST;
  for (size_t i = 0; is_container && i < calx_value_count(v); i++) {
    calx_status *status = copy_item(v, i, *out);
    if (status == NULL) continue;
    calx_value_free(*out);
    *out = NULL;
    return status;
  }
  return NULL;
}
