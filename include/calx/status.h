/**
 * calx/status.h: how every failure of the library is told.
 *
 * A calx_status is a value: NULL is success, anything else is owned by whoever
 * received it and freed with calx_status_free(). It carries a code (the 17 of
 * absl and PJRT, with the same numbers), a sentence that says what was asked,
 * what was found and where, and the user's call site.
 */
#ifndef CALX_STATUS_H
#define CALX_STATUS_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CALX_API __attribute__((visibility("default")))
#define CALX_MUST_USE __attribute__((warn_unused_result))
#define CALX_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define CALX_API
#define CALX_MUST_USE
#define CALX_PRINTF(at, first)
#endif

/*
 * Options are named: a struct of options is initialised by designators alone,
 * and a value without a name does not compile. gcc has an attribute for that.
 * clang gets it from a member without elements before each field: a value that
 * would reach it is an error, and it takes no room. gcc takes `.dims = 1` for a
 * value of the struct's first field, which has a name; it stops at a member
 * like CALX_NO_NUMBER, which takes no room either. `.padding = 1` for the pair
 * {1, 0} is meant, and `.padding = 1, 2`, so neither warns of braces there. A
 * third number would be gcc's value of the next field: CALX_PAIR_ ends in a
 * member where it stops. Nor do they warn of a field that is initialised twice:
 * CALX_WRITE_ gives first what the program's options override.
 */
#if defined(__cplusplus)
#define CALX_OPTIONS
#define CALX_NAMED
#define CALX_NO_NUMBER
#define CALX_ARRAY_(type, name, n) type name[n]
#elif defined(__clang__)
#pragma clang diagnostic error "-Wexcess-initializers"
#pragma clang diagnostic ignored "-Wmissing-braces"
#pragma clang diagnostic ignored "-Winitializer-overrides"
#define CALX_OPTIONS
#define CALX_NAMED       \
  __extension__ struct { \
  };
#define CALX_NO_NUMBER
#define CALX_ARRAY_(type, name, n) CALX_NAMED type name[n]
#elif defined(__GNUC__)
#pragma GCC diagnostic error "-Wdesignated-init"
#pragma GCC diagnostic ignored "-Wmissing-braces"
#pragma GCC diagnostic ignored "-Woverride-init"
#define CALX_OPTIONS __attribute__((designated_init))
#define CALX_NAMED
#define CALX_NO_NUMBER   \
  __extension__ struct { \
    struct {             \
    } none;              \
  } no_number_[0];
#define CALX_ARRAY_(type, name, n) \
  type name[n];                    \
  __extension__ struct {           \
    struct {                       \
    } none;                        \
  } name##_no_more_[0]
#else
#define CALX_OPTIONS
#define CALX_NAMED
#define CALX_NO_NUMBER
#define CALX_ARRAY_(type, name, n) type name[n]
#endif
#define CALX_PAIR_(type, name) CALX_ARRAY_(type, name, 2)

#ifndef __cplusplus
// A macro gives the fields that have other defaults than zero these numbers
// first, and the program's options override them: what is left was not written.
// O##_written_() makes it the 0 that the functions take for the default, and a
// 0 that was written what they take for zero, CALX_ZERO or CALX_ZERO_INT; in an
// int that is INT32_MIN.
#define CALX_UNWRITTEN_ (-1.7976931348623157e308)
#define CALX_UNWRITTEN_INT_ (-INT32_MAX)
static inline void calx_written_(double *value)
{
  *value = *value == CALX_UNWRITTEN_ ? 0 : *value == 0 ? -0.0 : *value;
}
static inline void calx_written_dim_(int *value)
{
  *value = *value == CALX_UNWRITTEN_INT_ ? 0 : *value == 0 ? INT32_MIN : *value;
}
static inline void calx_written_int_(int64_t *value)
{
  *value = *value == CALX_UNWRITTEN_INT_ ? 0 : *value == 0 ? INT64_MIN : *value;
}
// { 0, 0.9 } begins with a 0 that is meant; of { 0.9 } the second is no number.
static inline void calx_written_pair_(double *pair)
{
  const int first = pair[0] == 0 && pair[1] != 0 && pair[1] != CALX_UNWRITTEN_;
  if (pair[0] == CALX_UNWRITTEN_) pair[0] = 0;
  if (pair[1] == CALX_UNWRITTEN_) pair[1] = 0;
  if (first) pair[0] = -0.0;
}
// The options O that a program writes; CALX_UNWRITTEN_O_ has the first numbers.
#define CALX_WRITE_(O, ...) \
  O##_written_(&(O){ CALX_UNWRITTEN_##O##_ __VA_ARGS__ })
#define CALX_WRITTEN_(O, ...)         \
  static inline O *O##_written_(O *o) \
  {                                   \
    __VA_ARGS__                       \
    return o;                         \
  }
#endif

// ---- codes ------------------------------------------------------------------

/** What kind of failure a status is. The numbers are absl's and PJRT's. */
typedef enum calx_code {
  CALX_OK = 0,
  CALX_CANCELLED = 1,
  CALX_UNKNOWN = 2,
  CALX_INVALID_ARGUMENT = 3,
  CALX_DEADLINE_EXCEEDED = 4,
  CALX_NOT_FOUND = 5,
  CALX_ALREADY_EXISTS = 6,
  CALX_PERMISSION_DENIED = 7,
  CALX_RESOURCE_EXHAUSTED = 8,
  CALX_FAILED_PRECONDITION = 9,
  CALX_ABORTED = 10,
  CALX_OUT_OF_RANGE = 11,
  CALX_UNIMPLEMENTED = 12,
  CALX_INTERNAL = 13,
  CALX_UNAVAILABLE = 14,
  CALX_DATA_LOSS = 15,
  CALX_UNAUTHENTICATED = 16
} calx_code;

/** The upper-case name of a code, "INVALID_ARGUMENT"; "UNKNOWN" for a number
 * that is none. @threads thread-safe */
CALX_API const char *calx_code_name(calx_code code);

// ---- call sites -------------------------------------------------------------

/** A place in the user's program. The strings live for ever (they are literals
 * or interned). */
typedef struct calx_site {
  const char *file;
  const char *func;
  int line;
} calx_site;

/**
 * Sets the calling thread's call site, which the next operations record. The
 * macros of these headers call it; a binding calls it with its own language's
 * frame, whose strings must live as long as the process.
 * @threads thread-local
 */
CALX_API void calx_at_(const calx_site *site);

#define CALX_HERE (&(const calx_site){ __FILE__, __func__, __LINE__ })

// ---- status -----------------------------------------------------------------

typedef struct calx_status calx_status;

/** The code; CALX_OK for NULL. @threads thread-safe */
CALX_API calx_code calx_status_code(const calx_status *status);

/** "mnist.c:15: in forward: linear: …"; "ok" for NULL. Lives as long as the
 * status. @threads thread-safe */
CALX_API const char *calx_status_message(const calx_status *status);

/** The user's call site; NULL where there is none. Lives as long as the status.
 * @threads thread-safe */
CALX_API const calx_site *calx_status_site(const calx_status *status);

/** Writes "error: MESSAGE (CODE)" and a newline; nothing for NULL. */
CALX_API void calx_status_print(FILE *file, const calx_status *status);

/**
 * A status of the caller's own, for callbacks that report one.
 * @param format  as printf's: what was asked, what was found, where
 * @return never NULL for a code other than CALX_OK
 */
CALX_API calx_status *calx_status_new(calx_code code, const char *format, ...)
    CALX_PRINTF(2, 3) CALX_MUST_USE;

/** Frees; accepts NULL. */
CALX_API void calx_status_free(calx_status *status);

/** Returns a status from the enclosing function unless it is success. */
#define CALX_TRY(expression)                               \
  do {                                                     \
    calx_status *calx_try_status_ = (expression);          \
    if (calx_try_status_ != NULL) return calx_try_status_; \
  } while (0)

// ---- the library's few lines ------------------------------------------------

/** Takes one line without its newline. @threads may be called from any thread,
 * never with a lock held */
typedef void calx_log_fn(void *user, const char *line);

/** Where the library's few lines go (recompile cause, chosen device, …). NULL:
 * standard error. @threads thread-safe */
CALX_API void calx_log_set(calx_log_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
