#include "support/safetensors.h"
#include "calx/autograd.h"

#include "support/support.h"

#include "base/file.h"

struct safetensors {
  char *data;
  size_t size, body;  // where the elements start
  json_t *header;
};

static char *read_shared(const char *name, size_t *out_size)
{
  const char *shared = getenv("CALX_SHARED");
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", shared != NULL ? shared : "../shared",
           name);
  char *data;
  CHECK_STATUS_OK(cx_file_read(path, 0, &data, out_size));
  return data;
}

static json_t *parse(const char *text, size_t size, const char *name)
{
  json_error_t error;
  json_t *json = json_loadb(text, size, 0, &error);
  if (json == NULL) fail_msg("%s: line %d: %s", name, error.line, error.text);
  return json;
}

json_t *safetensors_json(const char *name)
{
  size_t size;
  char *data = read_shared(name, &size);
  json_t *json = parse(data, size, name);
  cx_free(data);
  return json;
}

safetensors *safetensors_open(const char *name)
{
  safetensors *file = test_calloc(1, sizeof *file);
  file->data = read_shared(name, &file->size);
  uint64_t header = 0;
  assert_true(file->size >= sizeof header);
  for (size_t i = 0; i < sizeof header; i++) {
    header |= (uint64_t)(unsigned char)file->data[i] << (8 * i);
  }
  assert_true(header <= file->size - sizeof header);
  file->body = sizeof header + (size_t)header;
  file->header = parse(file->data + sizeof header, (size_t)header, name);
  return file;
}

void safetensors_close(safetensors *file)
{
  json_decref(file->header);
  cx_free(file->data);
  test_free(file);
}

static calx_dtype dtype_named(const char *name)
{
  static const struct {
    const char *name;
    calx_dtype dtype;
  } known[] = {
    { "BOOL", CALX_BOOL }, { "I8", CALX_I8 },   { "I16", CALX_I16 },
    { "I32", CALX_I32 },   { "I64", CALX_I64 }, { "U8", CALX_U8 },
    { "U16", CALX_U16 },   { "U32", CALX_U32 }, { "U64", CALX_U64 },
    { "BF16", CALX_BF16 }, { "F16", CALX_F16 }, { "F32", CALX_F32 },
    { "F64", CALX_F64 },
  };
  for (size_t i = 0; name != NULL && i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].name, name) == 0) return known[i].dtype;
  }
  fail_msg("safetensors: element type '%s'", name != NULL ? name : "");
  return CALX_DTYPE_DEFAULT;
}

bool safetensors_find(const safetensors *file, const char *name,
                      safetensors_entry *out)
{
  json_t *json = json_object_get(file->header, name);
  if (json == NULL) return false;
  *out = (safetensors_entry){ .dtype = dtype_named(json_string_value(
                                  json_object_get(json, "dtype"))) };
  json_t *shape = json_object_get(json, "shape");
  out->rank = json_array_size(shape);
  assert_true(out->rank <= CALX_MAX_RANK);
  for (size_t i = 0; i < out->rank; i++) {
    out->dims[i] = json_integer_value(json_array_get(shape, i));
  }
  if (strncmp(name, "complex/", 8) == 0) {  // kept as pairs
    assert_true(out->rank > 0 && out->dims[out->rank - 1] == 2);
    out->dtype = out->dtype == CALX_F64 ? CALX_C128 : CALX_C64;
    out->rank--;
  }
  assert_true(cx_dims_bytes(out->dtype, out->dims, out->rank, &out->numel,
                            &out->bytes));
  json_t *offsets = json_object_get(json, "data_offsets");
  json_int_t begin = json_integer_value(json_array_get(offsets, 0));
  json_int_t end = json_integer_value(json_array_get(offsets, 1));
  assert_true(begin >= 0 && end >= begin);
  assert_true((size_t)(end - begin) == out->bytes);
  assert_true((size_t)end <= file->size - file->body);
  out->data = (unsigned char *)file->data + file->body + begin;
  return true;
}

static safetensors_entry entry_named(const safetensors *file, const char *name)
{
  safetensors_entry entry;
  if (!safetensors_find(file, name, &entry)) {
    fail_msg("safetensors: no tensor '%s'", name);
  }
  return entry;
}

calx_tensor *safetensors_tensor(const safetensors *file, const char *name,
                                calx_dtype as)
{
  safetensors_entry e = entry_named(file, name);
  if (as == CALX_DTYPE_DEFAULT) as = e.dtype;
  size_t from = calx_dtype_size(e.dtype), to = calx_dtype_size(as);
  unsigned char *data = test_malloc((size_t)e.numel * to + 1);
  if (as == e.dtype) {
    memcpy(data, e.data, e.bytes);
  } else {
    for (size_t i = 0; i < (size_t)e.numel; i++) {
      cx_store_double(as, data + i * to,
                      cx_load_double(e.dtype, e.data + i * from));
    }
  }
  calx_tensor *t = calx_tensor_from(data, as, calx_dims_of(e.dims, e.rank));
  test_free(data);
  return t;
}

double safetensors_distance(const safetensors *file, const char *name,
                            calx_tensor *t)
{
  safetensors_entry e = entry_named(file, name);
  calx_dims shape = calx_tensor_shape(t);
  assert_int_equal(shape.count, e.rank);
  for (size_t i = 0; i < e.rank; i++) {
    assert_int_equal(shape.values[i], e.dims[i]);
  }
  size_t n, size = calx_dtype_size(e.dtype);
  double *got = support_read(t, &n), most = 0;
  for (size_t i = 0; i < n; i++) {
    double wanted = cx_load_double(e.dtype, e.data + i * size);
    if (isnan(got[i]) && isnan(wanted)) continue;
    double d = fabs(got[i] - wanted);
    if (got[i] == wanted) d = 0;
    if (!(d <= most)) most = isnan(d) ? (double)INFINITY : d;
  }
  test_free(got);
  return most;
}

// ---- models -----------------------------------------------------------------

typedef struct loading {
  const safetensors *file;
  const char *prefix;
} loading;

static void load_entry(void *user, const char *path, calx_entry_kind kind,
                       calx_tensor *t)
{
  (void)kind;
  const loading *l = user;
  char name[256];
  snprintf(name, sizeof name, "%s%s", l->prefix, path);
  calx_assign(t, safetensors_tensor(l->file, name, CALX_DTYPE_DEFAULT));
}

calx_status *safetensors_load(const safetensors *file, const char *prefix,
                              calx_module *root)
{
  loading l = { file, prefix };
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();
  calx_module_visit(root, load_entry, &l);
  calx_sync(NULL);
  return calx_scope_end(scope);
}
