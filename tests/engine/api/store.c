// store: see store.h.
#include "store.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRIES = 128, KEY = 96, VALUE = 512, POLL_US = 500 };

typedef struct entry {
  char key[KEY], value[VALUE];
  size_t size;
  atomic_bool complete;
} entry;

struct store {
  atomic_uint used;
  entry entries[ENTRIES];
};

store *store_new(void)
{
  store *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(s != MAP_FAILED);
  return s;
}

void store_free(store *s)
{
  munmap(s, sizeof *s);
}

static const entry *find(store *s, const char *key, size_t size)
{
  for (unsigned i = 0; i < atomic_load(&s->used) && i < ENTRIES; i++) {
    const entry *e = &s->entries[i];
    if (atomic_load(&e->complete) && strlen(e->key) == size &&
        memcmp(e->key, key, size) == 0) {
      return e;
    }
  }
  return NULL;
}

// ---- answers ----

static long live;

static void delete_value(char *value)
{
  live--;
  free(value);
}

long store_values_live(void)
{
  return live;
}

PJRT_Error *store_answer(PJRT_KeyValueGetCallback_Args *args, const char *value,
                         size_t size)
{
  args->value = malloc(size + 1);
  assert_non_null(args->value);
  memcpy(args->value, value, size);
  args->value_size = size;
  args->value_deleter_callback = delete_value;
  live++;
  return NULL;
}

PJRT_Error *store_refuse(PJRT_CallbackError *error, PJRT_Error_Code code,
                         const char *message)
{
  return (*error)(code, message, strlen(message));
}

// ---- the callbacks ----

static PJRT_Error *get(PJRT_KeyValueGetCallback_Args *args)
{
  for (long waited = 0; waited < args->timeout_in_ms * 1000L;
       waited += POLL_US) {
    const entry *e = find(args->user_arg, args->key, args->key_size);
    if (e != NULL) return store_answer(args, e->value, e->size);
    usleep(POLL_US);
  }
  return store_refuse(args->callback_error, PJRT_Error_Code_DEADLINE_EXCEEDED,
                      "the key was not put");
}

static PJRT_Error *put(PJRT_KeyValuePutCallback_Args *args)
{
  store *s = args->user_arg;
  assert_true(args->key_size < KEY && args->value_size <= VALUE);
  if (find(s, args->key, args->key_size) != NULL) {
    return store_refuse(args->callback_error, PJRT_Error_Code_ALREADY_EXISTS,
                        "the key was put before");
  }
  const unsigned i = atomic_fetch_add(&s->used, 1);
  assert_true(i < ENTRIES);
  memcpy(s->entries[i].key, args->key, args->key_size);
  memcpy(s->entries[i].value, args->value, args->value_size);
  s->entries[i].size = args->value_size;
  atomic_store(&s->entries[i].complete, true);
  return NULL;
}

store_callbacks store_callbacks_of(store *s)
{
  return (store_callbacks){ get, put, s };
}

// ---- clients ----

PJRT_Error *store_client(const store_callbacks *by, int process, int processes,
                         int devices, PJRT_Client **out)
{
  const struct {
    const char *name;
    int64_t value;
  } told[] = { { "node_id", process },
               { "num_nodes", processes },
               { "cpu_device_count", devices } };
  enum { TOLD = sizeof told / sizeof *told };
  PJRT_NamedValue options[TOLD];
  for (int i = 0; i < TOLD; i++) {
    options[i] = (PJRT_NamedValue){
      CX_PJRT_ARGS(PJRT_NamedValue),     .name = told[i].name,
      .name_size = strlen(told[i].name), .type = PJRT_NamedValue_kInt64,
      .int64_value = told[i].value,      .value_size = 1
    };
  }
  ARGS(args, PJRT_Client_Create, .create_options = options, .num_options = TOLD,
       .kv_get_callback = by->get, .kv_get_user_arg = by->user,
       .kv_put_callback = by->put, .kv_put_user_arg = by->user);
  PJRT_Error *error = api->PJRT_Client_Create(&args);
  *out = args.client;
  return error;
}
