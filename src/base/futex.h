// base/futex: a thread sleeps on a 32-bit word until another thread changes
// the word and wakes it (Linux futex).
//
// The waiter reads the word, checks what it waits for, and passes the value
// that it read. The system compares this value with the word before the thread
// sleeps, so a change in between is never missed. A waiter may also wake
// without a reason: callers check their condition in a loop.
#ifndef CX_BASE_FUTEX_H
#define CX_BASE_FUTEX_H

#include <stdint.h>

// Which threads use a word.
typedef enum cx_futex_scope {
  CX_FUTEX_PRIVATE,  // those of one process
  CX_FUTEX_SHARED    // those of all processes that map the word's memory
} cx_futex_scope;

// Sleeps until the word differs from `expected`, cx_futex_wake() is called, or
// `timeout_ms` milliseconds have passed; -1: no timeout.
void cx_futex_wait(_Atomic uint32_t *word, uint32_t expected,
                   int64_t timeout_ms, cx_futex_scope scope);
// Wakes all threads that sleep on the word.
void cx_futex_wake(_Atomic uint32_t *word, cx_futex_scope scope);

#endif
