// fake/plugin: the table that the client sees, and the plugin's settings.
//
// Every slot of the outer table counts its call, compares the argument's
// struct_size as XLA does, fails if it was told to, and calls the inner table,
// whose slots that no test needs answer with their name.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define EXPORT __attribute__((visibility("default")))
#define FAILURES 16

typedef struct failure {
  int id;
  long at;  // number of the call
  int code;
  char text[128];
} failure;

static struct settings {
  int minor;
  int devices;
  char platform[32];
  bool xla;
  bool async;
  bool hold;
  int outputs;
  char lose[16];
  char refuse[64];
  failure failures[FAILURES];
  size_t n_failures;
  failure late;
  int stop;  // a function's number and 1
} now;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static pthread_once_t filled = PTHREAD_ONCE_INIT;
static long calls[FAKE_FUNCTIONS];
static long launches;
static char last_options[512];
static int last_launch;

PJRT_Api fake_table;
PJRT_Api fake_inner;

// ---- the tables ----

static const char *const names[] = {
#define NAME(name) #name,
  CX_PJRT_FUNCTIONS(NAME, NAME)
#undef NAME
};

#define STUB(name)                                                          \
  static PJRT_Error *stub_##name(name##_Args *args)                         \
  {                                                                         \
    (void)args;                                                             \
    return fake_error(PJRT_Error_Code_UNIMPLEMENTED, "fake: no %s", #name); \
  }                                                                         \
  static PJRT_Error *outer_##name(name##_Args *args)                        \
  {                                                                         \
    PJRT_Error *error = fake_enter(FAKE_##name);                            \
    if (error != NULL) return error;                                        \
    if (args->struct_size < (size_t)name##_Args_STRUCT_SIZE) {              \
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,                   \
                        "Unexpected %s_Args size: expected %zu, got %zu",   \
                        #name, (size_t)name##_Args_STRUCT_SIZE,             \
                        args->struct_size);                                 \
    }                                                                       \
    return fake_inner.name(args);                                           \
  }
#define NO_STUB(name)
CX_PJRT_FUNCTIONS(STUB, NO_STUB)

static void fill_table(void)
{
#define FILL(name) fake_table.name = outer_##name;
#define FILL_VOID(name) fake_table.name = fake_inner.name;
  CX_PJRT_FUNCTIONS(FILL, FILL_VOID)
#undef FILL
#undef FILL_VOID
  fake_table.struct_size = PJRT_Api_STRUCT_SIZE;
  fake_table.extension_start = NULL;
  fake_table.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  fake_table.pjrt_api_version.major_version = PJRT_API_MAJOR;
  fake_table.pjrt_api_version.minor_version = PJRT_API_MINOR;
}

static void reset(void)
{
  now = (struct settings){
    .minor = PJRT_API_MINOR, .devices = 1, .platform = "fake", .outputs = -1
  };
  fill_table();
}

static void fill(void)
{
#define FILL(name) fake_inner.name = stub_##name;
  CX_PJRT_FUNCTIONS(FILL, NO_STUB)
#undef FILL
  fake_fill_objects(&fake_inner);
  fake_fill_client(&fake_inner);
  fake_fill_buffers(&fake_inner);
  fake_fill_programs(&fake_inner);
  reset();
}

int fake_id(const char *name, size_t size)
{
  for (int i = 0; i < FAKE_FUNCTIONS; i++) {
    if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) return i;
  }
  return -1;
}

// ---- reading the settings ----

static void copy(char *out, size_t room, const char *value, size_t size)
{
  if (size >= room) size = room - 1;
  memcpy(out, value, size);
  out[size] = '\0';
}

// K:CODE:TEXT
static bool read_failure(const char *value, size_t size, failure *out)
{
  char text[256];
  int used = 0;
  copy(text, sizeof text, value, size);
  if (sscanf(text, "%ld:%d:%n", &out->at, &out->code, &used) != 2 || !used) {
    return false;
  }
  copy(out->text, sizeof out->text, text + used, strlen(text + used));
  return true;
}

// FUNCTION@K:CODE:TEXT
static bool add_failure(const char *value, size_t size)
{
  const char *at = memchr(value, '@', size);
  if (at == NULL || now.n_failures == FAILURES) return false;
  failure *f = &now.failures[now.n_failures];
  f->id = fake_id(value, (size_t)(at - value));
  if (f->id < 0) return false;
  at++;
  if (!read_failure(at, size - (size_t)(at - value), f)) return false;
  f->at += calls[f->id];
  now.n_failures++;
  return true;
}

static bool set_late(const char *value, size_t size)
{
  if (!read_failure(value, size, &now.late)) return false;
  now.late.at += launches;
  return true;
}

static bool set_slot(const char *value, size_t size, bool cut)
{
  int id = fake_id(value, size);
  if (id < 0) return false;
  size_t offset =
      offsetof(PJRT_Api, PJRT_Error_Destroy) + (size_t)id * sizeof(void *);
  if (cut) {
    fake_table.struct_size = offset;
  } else {
    memset((char *)&fake_table + offset, 0, sizeof(void *));
  }
  return true;
}

static bool set_one(const char *item, size_t size)
{
  if (size == 5 && memcmp(item, "reset", 5) == 0) {
    reset();
    return true;
  }
  const char *equals = memchr(item, '=', size);
  if (equals == NULL) return false;
  size_t n = (size_t)(equals - item);
  const char *value = equals + 1;
  size_t value_size = size - n - 1;
  int number = atoi(value);
#define IS(key) (n == strlen(key) && memcmp(item, key, n) == 0)
  if (IS("major")) {
    fake_table.pjrt_api_version.major_version = number;
  } else if (IS("minor")) {
    fake_table.pjrt_api_version.minor_version = now.minor = number;
  } else if (IS("cut")) {
    return set_slot(value, value_size, true);
  } else if (IS("null")) {
    return set_slot(value, value_size, false);
  } else if (IS("fail")) {
    return add_failure(value, value_size);
  } else if (IS("late")) {
    return set_late(value, value_size);
  } else if (IS("stop")) {
    now.stop = fake_id(value, value_size) + 1;
    return now.stop != 0;
  } else if (IS("async")) {
    now.async = number != 0;
  } else if (IS("hold")) {
    now.hold = number != 0;
    pthread_cond_broadcast(&released);
  } else if (IS("devices")) {
    now.devices = number;
  } else if (IS("platform")) {
    copy(now.platform, sizeof now.platform, value, value_size);
  } else if (IS("xla")) {
    now.xla = number != 0;
  } else if (IS("outputs")) {
    now.outputs = number;
  } else if (IS("lose")) {
    copy(now.lose, sizeof now.lose, value, value_size);
  } else if (IS("refuse")) {
    copy(now.refuse, sizeof now.refuse, value, value_size);
  } else {
    return false;
  }
#undef IS
  return true;
}

EXPORT bool fake_pjrt_set(const char *settings);
EXPORT bool fake_pjrt_set(const char *settings)
{
  pthread_once(&filled, fill);
  bool ok = true;
  pthread_mutex_lock(&lock);
  while (*settings != '\0') {
    size_t size = strcspn(settings, ";");
    ok = set_one(settings, size) && ok;
    settings += size;
    if (*settings == ';') settings++;
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

// ---- what the parts ask ----

PJRT_Error *fake_enter(int id)
{
  failure found = { 0 };
  pthread_mutex_lock(&lock);
  calls[id]++;
  for (size_t i = 0; i < now.n_failures; i++) {
    if (now.failures[i].id == id && now.failures[i].at == calls[id]) {
      found = now.failures[i];
    }
  }
  bool stops = now.stop == id + 1;
  if (stops) now.stop = 0;
  pthread_mutex_unlock(&lock);
  if (stops) raise(SIGSTOP);
  return found.at == 0 ? NULL : fake_error(found.code, "%s", found.text);
}

bool fake_enter_launch(int *out_code, char out_text[128])
{
  pthread_mutex_lock(&lock);
  launches++;
  bool late = now.late.at != 0 && now.late.at == launches;
  *out_code = now.late.code;
  memcpy(out_text, now.late.text, sizeof now.late.text);
  pthread_mutex_unlock(&lock);
  return late;
}

void fake_wait_while_held(void)
{
  pthread_mutex_lock(&lock);
  while (now.hold) pthread_cond_wait(&released, &lock);
  pthread_mutex_unlock(&lock);
}

static int read_number(const int *value)
{
  pthread_mutex_lock(&lock);
  int copied = *value;
  pthread_mutex_unlock(&lock);
  return copied;
}

static bool read_flag(const bool *value)
{
  pthread_mutex_lock(&lock);
  bool copied = *value;
  pthread_mutex_unlock(&lock);
  return copied;
}

static bool read_equal(const char *value, const char *wanted)
{
  pthread_mutex_lock(&lock);
  bool equal = strcmp(value, wanted) == 0;
  pthread_mutex_unlock(&lock);
  return equal;
}

bool fake_is_async(void)
{
  return read_flag(&now.async);
}
bool fake_is_xla(void)
{
  return read_flag(&now.xla);
}
int fake_device_count(void)
{
  return read_number(&now.devices);
}
int fake_minor(void)
{
  return read_number(&now.minor);
}
int fake_outputs(void)
{
  return read_number(&now.outputs);
}
bool fake_loses(const char *what)
{
  return read_equal(now.lose, what);
}
bool fake_refuses(const char *key)
{
  return read_equal(now.refuse, key);
}

void fake_platform(char out[32])
{
  pthread_mutex_lock(&lock);
  memcpy(out, now.platform, sizeof now.platform);
  pthread_mutex_unlock(&lock);
}

void fake_note_options(const char *text)
{
  pthread_mutex_lock(&lock);
  copy(last_options, sizeof last_options, text, strlen(text));
  pthread_mutex_unlock(&lock);
}

void fake_note_launch(int number)
{
  pthread_mutex_lock(&lock);
  last_launch = number;
  pthread_mutex_unlock(&lock);
}

// ---- what the tests and the client see ----

EXPORT long fake_pjrt_calls(const char *function);
EXPORT long fake_pjrt_calls(const char *function)
{
  int id = fake_id(function, strlen(function));
  pthread_mutex_lock(&lock);
  long n = id < 0 ? -1 : calls[id];
  pthread_mutex_unlock(&lock);
  return n;
}

EXPORT long fake_pjrt_live(void);
EXPORT long fake_pjrt_live(void)
{
  return atomic_load(&fake_live_objects);
}

EXPORT const char *fake_pjrt_options(void);
EXPORT const char *fake_pjrt_options(void)
{
  return last_options;
}

EXPORT int fake_pjrt_launch(void);
EXPORT int fake_pjrt_launch(void)
{
  return read_number(&last_launch);
}

EXPORT const PJRT_Api *GetPjrtApi(void);
EXPORT const PJRT_Api *GetPjrtApi(void)
{
  pthread_once(&filled, fill);
  const char *settings = getenv("FAKE_PJRT");
  if (settings != NULL && !fake_pjrt_set(settings)) {
    fprintf(stderr, "FAKE_PJRT is not understood: %s\n", settings);
    return NULL;
  }
  return &fake_table;
}
