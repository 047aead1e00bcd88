// api/store: the key-value store that the caller of PJRT_Client_Create offers.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

bool cpu_api_store_open(const PJRT_Client_Create_Args *args,
                        const cpu_api_world *world, int64_t timeout_ms,
                        cpu_api_store *out)
{
  static atomic_uint clients[CPU_API_MAX_DEVICES];  // of each process
  if (world->n_processes == 1 || args->kv_get_callback == NULL ||
      args->kv_put_callback == NULL) {
    return false;
  }
  *out =
      (cpu_api_store){ .args = args,
                       .timeout_ms = timeout_ms,
                       .until_ns = cx_now_ns() + timeout_ms * 1000000,
                       .client = atomic_fetch_add(&clients[world->process], 1),
                       .world = world };
  return true;
}

static PJRT_Error *make_error(PJRT_Error_Code code, const char *message,
                              size_t size)
{
  return cpu_api_error(cpu_api_callers_error(code, message, size));
}

static calx_status *take_error(PJRT_Error *error)
{
  if (error == NULL) return NULL;
  PJRT_Error_GetCode_Args code = { CX_PJRT_ARGS(PJRT_Error_GetCode_Args),
                                   .error = error };
  PJRT_Error_Message_Args text = { CX_PJRT_ARGS(PJRT_Error_Message_Args),
                                   .error = error };
  (void)cpu_api_PJRT_Error_GetCode(&code);
  cpu_api_PJRT_Error_Message(&text);
  calx_status *status =
      cpu_api_callers_error(code.code, text.message, text.message_size);
  PJRT_Error_Destroy_Args end = { CX_PJRT_ARGS(PJRT_Error_Destroy_Args),
                                  .error = error };
  cpu_api_PJRT_Error_Destroy(&end);
  return status;
}

static void write_key(const cpu_api_store *s, const char *what,
                      uint32_t process, char out[CPU_API_STORE_TEXT])
{
  snprintf(out, CPU_API_STORE_TEXT, "calx/%u/%s/%u", s->client, what,
           (unsigned)process);
}

calx_status *cpu_api_store_put(const cpu_api_store *s, const char *what,
                               const char *value)
{
  char key[CPU_API_STORE_TEXT];
  PJRT_CallbackError callback = make_error;
  write_key(s, what, s->world->process, key);
  PJRT_KeyValuePutCallback_Args args = { CX_PJRT_ARGS(
                                             PJRT_KeyValuePutCallback_Args),
                                         .key = key,
                                         .key_size = strlen(key),
                                         .value = value,
                                         .value_size = strlen(value),
                                         .callback_error = &callback,
                                         .user_arg = s->args->kv_put_user_arg };
  return cx_annotate(take_error(s->args->kv_put_callback(&args)),
                     "while '%s' was put into the key-value store", key);
}

static int left_ms(const cpu_api_store *s)
{
  const int64_t left = (s->until_ns - cx_now_ns()) / 1000000;
  return left < 1 ? 1 : left > INT32_MAX ? INT32_MAX : (int)left;
}

// The text that the process puts, as soon as it does.
calx_status *cpu_api_store_get(const cpu_api_store *s, const char *what,
                               uint32_t process, char out[CPU_API_STORE_TEXT])
{
  char key[CPU_API_STORE_TEXT];
  PJRT_CallbackError callback = make_error;
  write_key(s, what, process, key);
  PJRT_KeyValueGetCallback_Args args = { CX_PJRT_ARGS(
                                             PJRT_KeyValueGetCallback_Args),
                                         .key = key,
                                         .key_size = strlen(key),
                                         .timeout_in_ms = left_ms(s),
                                         .callback_error = &callback,
                                         .user_arg = s->args->kv_get_user_arg };
  calx_status *status = take_error(s->args->kv_get_callback(&args));
  if (status != NULL) {
    return cx_annotate(
        status,
        "while '%s' of process %u of %u was awaited in the key-value store, "
        "for at most %" PRId64
        " s (CALX_COLLECTIVE_TIMEOUT_S); all processes must make their "
        "clients of this engine, in the same order",
        what, (unsigned)process, (unsigned)s->world->n_processes,
        s->timeout_ms / 1000);
  }
  const bool fits = args.value != NULL && args.value_size < CPU_API_STORE_TEXT;
  if (fits) {
    memcpy(out, args.value, args.value_size);
    out[args.value_size] = '\0';
  }
  if (args.value != NULL && args.value_deleter_callback != NULL) {
    args.value_deleter_callback(args.value);
  }
  if (fits) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s' of the key-value store has %zu bytes, this engine puts "
                  "at most %d",
                  key, args.value_size, CPU_API_STORE_TEXT - 1);
}

calx_status *cpu_api_store_failed(uint32_t process)
{
  return cx_error(CALX_ABORTED,
                  "process %u could not make its client; its own error says "
                  "why",
                  (unsigned)process);
}

calx_status *cpu_api_store_barrier(const cpu_api_store *store, const char *what)
{
  cpu_api_store s = *store;
  char text[CPU_API_STORE_TEXT];
  s.until_ns = cx_now_ns() + s.timeout_ms * 1000000;
  CALX_TRY(cpu_api_store_put(&s, what, "yes"));
  for (uint32_t i = 0; i < s.world->n_processes; i++) {
    CALX_TRY(cpu_api_store_get(&s, what, i, text));
    if (strcmp(text, "yes") != 0) return cpu_api_store_failed(i);
  }
  return NULL;
}

void cpu_api_store_give_up(const cpu_api_store *s)
{
  static const char *const all[] = { "process", "segment", "opened",
                                     CPU_API_STORE_LINKED, CPU_API_STORE_MADE };
  // What was put stays.
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    calx_status_free(cpu_api_store_put(s, all[i], CPU_API_STORE_NO));
  }
}
