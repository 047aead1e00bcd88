// fake/internal: what the parts of the fake plugin share.
#ifndef CX_TESTS_FAKE_INTERNAL_H
#define CX_TESTS_FAKE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/pjrt.h"

#define FAKE_RANK 8
#define FAKE_DEVICES 64

// ---- settings ----

// The slots by number, in the table's order.
enum {
#define FAKE_ID(name) FAKE_##name,
  CX_PJRT_FUNCTIONS(FAKE_ID, FAKE_ID)
#undef FAKE_ID
      FAKE_FUNCTIONS
};
extern PJRT_Api fake_table;  // what the client sees: counts, may fail
extern PJRT_Api fake_inner;  // what it calls then
int fake_id(const char *name, size_t size);  // -1: none

// Once for each call of a function; an error when it is to fail.
PJRT_Error *fake_enter(int id);
// Once for each launch; whether it is to fail late, and how.
bool fake_enter_launch(int *out_code, char out_text[128]);

bool fake_is_async(void);
void fake_wait_while_held(void);
int fake_device_count(void);
void fake_platform(char out[32]);
bool fake_is_xla(void);
int fake_minor(void);
int fake_outputs(void);  // -1: as the program says
bool fake_loses(const char *what);
bool fake_refuses(const char *key);
void fake_note_options(const char *text);
void fake_note_launch(int number);

// ---- objects ----

extern atomic_long fake_live_objects;

PJRT_Error *fake_error(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Refcounted. Set once, which wakes the waiting and runs the callbacks.
PJRT_Event *fake_event_new(void);
PJRT_Event *fake_event_keep(PJRT_Event *e);
void fake_event_release(PJRT_Event *e);
void fake_event_set(PJRT_Event *e, int code, const char *text);  // 0: success
// Waits; the code, and the text where it is not 0.
int fake_event_wait(PJRT_Event *e, char out_text[128]);

typedef struct fake_shape {
  int type;
  size_t rank;
  int64_t dims[FAKE_RANK];
} fake_shape;
size_t fake_type_bytes(int type);
size_t fake_shape_bytes(const fake_shape *s);
bool fake_shape_equal(const fake_shape *a, const fake_shape *b);

struct PJRT_DeviceDescription {
  int id;
  int process;
  char text[32];
};

struct PJRT_Device {
  PJRT_DeviceDescription description;
  PJRT_Client *client;
  PJRT_Memory *memories[1];
};

typedef struct fake_job {
  struct fake_job *next;
  void (*run)(void *user);
  void *user;
} fake_job;

struct PJRT_Client {
  char platform[32];
  int n_devices;
  PJRT_Device devices[FAKE_DEVICES];
  PJRT_Device *list[FAKE_DEVICES];
  // Of all processes, and those of the others.
  int n_everywhere;
  PJRT_Device *everywhere[FAKE_DEVICES];
  PJRT_Device others[FAKE_DEVICES];
  // The thread that works when async, started by the first job.
  pthread_mutex_t lock;
  pthread_cond_t wake;
  pthread_t thread;
  bool started;
  bool closing;
  fake_job *first;
  fake_job *last;
};
// Now, or on the client's thread.
void fake_work(PJRT_Client *c, void (*run)(void *user), void *user);

struct PJRT_Buffer {
  atomic_int refs;
  PJRT_Device *device;
  fake_shape shape;
  void *data;
  bool owned;
  atomic_bool deleted;
  PJRT_Event *ready;
  PJRT_Event *host_done;  // fires when the buffer is gone; NULL: data is ours
};
PJRT_Buffer *fake_buffer_new(PJRT_Device *device, const fake_shape *shape,
                             bool with_data);
PJRT_Buffer *fake_buffer_keep(PJRT_Buffer *b);
void fake_buffer_release(PJRT_Buffer *b);

// ---- programs ----

typedef struct fake_signature {
  size_t n_params;
  fake_shape *params;
  bool *donated;
  size_t n_results;
  fake_shape *results;
} fake_signature;
// Of the function main in generic form; an error names what was not understood.
PJRT_Error *fake_signature_parse(const char *text, size_t size,
                                 fake_signature *out);
void fake_signature_clear(fake_signature *s);

// ---- the parts' functions ----

void fake_fill_objects(PJRT_Api *api);
void fake_fill_client(PJRT_Api *api);
void fake_fill_buffers(PJRT_Api *api);
void fake_fill_programs(PJRT_Api *api);

#endif
