// cli/value: see value.h.
#include "value.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "element.h"
#include "hlo/number.h"

#define MOST_PRINTED 16

static calx_status *wrong_size(size_t i, const cx_cli_value *value,
                               const char *path, long long found)
{
  cx_hlo_type type = { value->elem, value->shape.rank, value->shape.dims };
  return cx_error(CALX_INVALID_ARGUMENT,
                  "argument %zu is %s and wants %zu bytes, '%s' has %lld", i,
                  cx_hlo_shape(&type).s, value->bytes, path, found);
}

calx_status *cx_cli_value_check(const cx_cli_value *value, size_t i,
                                const char *path)
{
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size == (long long)value->bytes) {
    return NULL;
  }
  return wrong_size(i, value, path, info.st_size);
}

calx_status *cx_cli_value_read(const cx_cli_value *value, size_t i,
                               const char *path, char **out_data)
{
  size_t size = 0;
  CALX_TRY(cx_file_read(path, value->bytes + 1, out_data, &size));
  if (size == value->bytes) {
    cx_cli_element_extend(value->elem, *out_data, size);
    return NULL;
  }
  cx_free(*out_data);
  *out_data = NULL;
  return wrong_size(i, value, path, (long long)size);
}

static void print(const cx_cli_value *value, size_t i, const char *replica,
                  const char *data)
{
  cx_hlo_type type = { value->elem, value->shape.rank, value->shape.dims };
  size_t element = cx_hlo_elem_bytes(value->elem);
  size_t n = value->bytes / element;
  cx_text line = { 0 };
  cx_text_format(&line, "%s%s%zu: %s ", replica, *replica != '\0' ? "/" : "", i,
                 cx_hlo_shape(&type).s);
  for (size_t k = 0; k < n && k < MOST_PRINTED; k++) {
    cx_text_append(&line, k > 0 ? ", " : "");
    cx_hlo_print_element(&line, value->elem, data + k * element);
  }
  if (n > MOST_PRINTED) cx_text_append(&line, ", ...");
  puts(cx_text_str(&line));
  cx_text_free(&line);
}

calx_status *cx_cli_value_give(const cx_cli_value *value, size_t i,
                               const char *replica, const char *folder,
                               char *data)
{
  cx_cli_element_extend(value->elem, data, value->bytes);
  if (folder == NULL) {
    print(value, i, replica, data);
    return NULL;
  }
  cx_text path = { 0 };
  cx_text_format(&path, "%s%s%s", folder, *replica != '\0' ? "/" : "", replica);
  calx_status *status = NULL;
  if (cx_text_failed(&path)) status = cx_out_of_memory();
  if (status == NULL) status = cx_folder_make(path.data, 0777);
  cx_text_format(&path, "/%zu.bin", i);
  if (status == NULL && cx_text_failed(&path)) status = cx_out_of_memory();
  if (status == NULL) status = cx_file_write(path.data, data, value->bytes);
  cx_text_free(&path);
  return status;
}
