// pjrt/call: converts what a plugin returns: errors, texts, named values,
// descriptions of devices. A plugin is foreign code: sizes are bounded, numbers
// are checked, and no text is assumed to end with a zero byte.
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

#define STRING_LIMIT 4096
#define MESSAGE_LIMIT (64 << 10)
#define LIST_LIMIT 64

static atomic_long live;

void cx_pjrt_count(long change)
{
  atomic_fetch_add_explicit(&live, change, memory_order_relaxed);
}

long cx_pjrt_live(void)
{
  return atomic_load_explicit(&live, memory_order_relaxed);
}

calx_status *cx_pjrt_missing(const cx_pjrt_plugin *p, const char *function)
{
  return cx_error(CALX_UNIMPLEMENTED,
                  "plugin '%s' (PJRT %d.%d) does not have %s", p->name,
                  p->api->pjrt_api_version.major_version,
                  p->api->pjrt_api_version.minor_version, function);
}

calx_status *cx_pjrt_check_object(const cx_pjrt_plugin *p, const void *object,
                                  const char *what)
{
  if (object != NULL) return NULL;
  return cx_error(CALX_INTERNAL, "plugin '%s' returned no %s", p->name, what);
}

static void destroy_error(const PJRT_Api *api, PJRT_Error *error)
{
  CX_PJRT_DECLARE(args, PJRT_Error_Destroy, .error = error);
  api->PJRT_Error_Destroy(&args);
}

static calx_code error_code(const PJRT_Api *api, PJRT_Error *error)
{
  CX_PJRT_DECLARE(args, PJRT_Error_GetCode, .error = error);
  PJRT_Error *second = api->PJRT_Error_GetCode(&args);
  if (second != NULL) {
    destroy_error(api, second);
    return CALX_UNKNOWN;
  }
  int code = (int)args.code;
  if (code < (int)CALX_CANCELLED || code > (int)CALX_UNAUTHENTICATED) {
    return CALX_UNKNOWN;
  }
  return (calx_code)code;
}

// check_table() (plugin.c) has found the three functions on errors.
calx_status *cx_pjrt_take_error(const cx_pjrt_plugin *p, const char *function,
                                PJRT_Error *error)
{
  const PJRT_Api *api = p->api;
  CX_PJRT_DECLARE(args, PJRT_Error_Message, .error = error);
  api->PJRT_Error_Message(&args);
  const char *message = args.message;
  size_t size = args.message_size;
  if (message == NULL) size = 0;
  if (size > MESSAGE_LIMIT) size = MESSAGE_LIMIT;
  while (size > 0 && (message[size - 1] == '\n' || message[size - 1] == ' ')) {
    size--;
  }
  calx_status *status =
      cx_error(error_code(api, error), "%s on plugin '%s': %.*s", function,
               p->name, (int)size, size > 0 ? message : "");
  destroy_error(api, error);
  return status;
}

char *cx_pjrt_string(const char *s, size_t size)
{
  if (s == NULL) size = 0;
  return cx_strndup(size > 0 ? s : "",
                    size < STRING_LIMIT ? size : STRING_LIMIT);
}

calx_status *cx_pjrt_device_describe(const cx_pjrt_plugin *p, PJRT_Device *raw,
                                     PJRT_DeviceDescription **out, int *out_id)
{
  CX_PJRT_DECLARE(get, PJRT_Device_GetDescription, .device = raw);
  CALX_TRY(CX_PJRT_CALL(p, PJRT_Device_GetDescription, &get));
  *out = get.device_description;
  CX_PJRT_DECLARE(id, PJRT_DeviceDescription_Id, .device_description = *out);
  CALX_TRY(CX_PJRT_CALL(p, PJRT_DeviceDescription_Id, &id));
  *out_id = id.id;
  return NULL;
}

static void print_list(cx_text *out, const PJRT_NamedValue *value)
{
  size_t n = value->int64_array_value == NULL ? 0 : value->value_size;
  for (size_t i = 0; i < n && i < LIST_LIMIT; i++) {
    if (i > 0) cx_text_char(out, '.');
    cx_text_int(out, value->int64_array_value[i]);
  }
  if (n > LIST_LIMIT) cx_text_append(out, "…");
}

void cx_pjrt_value_print(cx_text *out, const PJRT_NamedValue *value)
{
  if (value->name != NULL) {
    cx_text_append_n(
        out, value->name,
        value->name_size < STRING_LIMIT ? value->name_size : STRING_LIMIT);
  }
  cx_text_append(out, " = ");
  switch ((int)value->type) {
    case PJRT_NamedValue_kString:
      if (value->string_value != NULL) {
        cx_text_append_n(out, value->string_value,
                         value->value_size < STRING_LIMIT ? value->value_size
                                                          : STRING_LIMIT);
      }
      break;
    case PJRT_NamedValue_kInt64: cx_text_int(out, value->int64_value); break;
    case PJRT_NamedValue_kInt64List: print_list(out, value); break;
    case PJRT_NamedValue_kFloat:
      cx_text_format(out, "%g", (double)value->float_value);
      break;
    case PJRT_NamedValue_kBool:
      cx_text_append(out, value->bool_value ? "true" : "false");
      break;
    default: cx_text_append(out, "?"); break;
  }
}
