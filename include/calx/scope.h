/**
 * calx/scope.h: who owns temporaries, and where errors are collected.
 *
 * Every result of an op belongs to the current scope of the calling thread and
 * lives until calx_scope_end(). The first error of a scope sticks: later ops
 * on its poisoned results do nothing, and calx_scope_end() returns it. Each
 * thread has a root scope, so small programs work without any.
 *
 * @threads thread-local throughout
 */
#ifndef CALX_SCOPE_H
#define CALX_SCOPE_H

#include "calx/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_scope calx_scope;

/** Begins a scope inside the current one. Never NULL: without memory, a scope
 *  that holds the error. */
CALX_API calx_scope *calx_scope_begin(void);

/**
 * Ends a scope, and those begun in it and forgotten: releases their
 * temporaries, ends their no-grad regions, returns the first error. A failed
 * step changes nothing: durable tensors keep their last materialised value.
 */
CALX_API calx_status *calx_scope_end(calx_scope *scope) CALX_MUST_USE;

/** The first error of the current scope so far, taken out of it; NULL: none.
 *  For programs without scopes and for bindings. An error that nobody takes is
 *  logged: when a read outside of any scope fails, when the thread ends, at
 *  calx_shutdown() and at the exit. */
CALX_API calx_status *calx_scope_take_error(void) CALX_MUST_USE;

/** The same, left where it is and owned by the scope. */
CALX_API const calx_status *calx_scope_error(void);

/** Takes a status of the program's own: it is the scope's error unless there is
 *  one already. For functions without a result that others call, as hooks of
 *  the trainer. NULL is accepted. */
CALX_API void calx_scope_set_error(calx_status *status);

#ifdef __cplusplus
}
#else
#ifndef CALX_NO_SITES
#define calx_scope_begin() (calx_at_(CALX_HERE), calx_scope_begin())
#endif
#endif
#endif
