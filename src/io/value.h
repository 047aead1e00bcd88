// io/value: what a value is, for those that walk a whole tree.
#ifndef CX_IO_VALUE_H
#define CX_IO_VALUE_H

#include "calx/io.h"

// No tree that is read or written is nested deeper, so functions that walk one
// may recurse.
enum { CX_IO_DEPTH = 64 };

typedef struct cx_io_entry {
  char *key;       // owned; NULL: no dict, or a number
  int64_t number;  // the key where there is no text
  calx_value *value;
} cx_io_entry;

struct calx_value {
  calx_kind kind;
  calx_value *owner;  // the container it is in; NULL: the caller's
  union {
    bool boolean;
    int64_t integer;
    double real;
    calx_tensor *tensor;  // owned
    struct {
      char *data;  // owned, zero-terminated past its size
      size_t size;
    } text;
    struct {
      cx_io_entry *entries;
      size_t count, capacity;
      uint32_t
          *slots;      // of a dict: indices + 1 by hash; NULL while it is small
      size_t n_slots;  // a power of two
    } items;
  } as;
};

bool cx_io_is_container(calx_kind kind);
// A string of `size` bytes, which may hold zeros.
calx_value *cx_io_text(calx_kind kind, const char *data, size_t size);
// An item under a copy of the key of another dict's item, or without a key.
calx_status *cx_io_put(calx_value *container, const cx_io_entry *like,
                       calx_value *item) CALX_MUST_USE;

// Puts an item into a dict for some time. The caller keeps owning the item, on
// failure too, and calls cx_io_take_back() before either is freed. Taking back
// an item that was not put does nothing.
calx_status *cx_io_lend(calx_value *dict, const char *key,
                        calx_value *item) CALX_MUST_USE;
void cx_io_take_back(calx_value *dict, calx_value *item);

#endif
