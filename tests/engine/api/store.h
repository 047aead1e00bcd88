// store: a key-value store as a distributed runtime has one, for clients of
// processes that this one forks; and clients that are given its callbacks.
#ifndef CX_TESTS_ENGINE_API_STORE_H
#define CX_TESTS_ENGINE_API_STORE_H

#include "host.h"

typedef struct store store;  // in memory that forked processes share

store *store_new(void);
void store_free(store *s);

typedef struct store_callbacks {
  PJRT_KeyValueGetCallback get;
  PJRT_KeyValuePutCallback put;
  void *user;
} store_callbacks;
store_callbacks store_callbacks_of(store *s);

// A client as JAX makes one: it is told its number and the callbacks.
PJRT_Error *store_client(const store_callbacks *by, int process, int processes,
                         int devices, PJRT_Client **out);

// What a callback returns: a copy of the value, or an error.
PJRT_Error *store_answer(PJRT_KeyValueGetCallback_Args *args, const char *value,
                         size_t size);
PJRT_Error *store_refuse(PJRT_CallbackError *error, PJRT_Error_Code code,
                         const char *message);
long store_values_live(void);  // answers that were not deleted

#endif
