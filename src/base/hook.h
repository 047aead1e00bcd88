// base/hook: lists of functions that others register, each with an id by which
// it is removed at any time, during a call of the list too.
//
// One lock guards all lists, since a removal knows only the id. Functions are
// called without the lock.
#ifndef CX_HOOK_H
#define CX_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void cx_hook_fn(void);  // cast to what `kind` says

typedef struct cx_hook cx_hook;
struct cx_hook {
  uint64_t id;
  int kind;
  uint32_t out;  // of a node with several outputs: which one
  cx_hook_fn *fn;
  void *user;
  void (*drop)(void *user);  // once, after the last call; NULL: nothing
  int refs;                  // the list's and those of calls under way
  bool removed;
  struct cx_hook_list *list;
  cx_hook *before, *after;
  cx_hook *next_live, **live_link;
};

typedef struct cx_hook_list {
  cx_hook *first, *last;
} cx_hook_list;  // the zero value is empty

// Adds a copy of what `hook` says (kind, out, fn, user, drop). 0: no memory,
// then nothing is dropped.
uint64_t cx_hook_add(cx_hook_list *list, const cx_hook *hook);
// Nothing happens where it is gone already.
void cx_hook_remove(uint64_t id);
// The first hook of the list behind `at` (NULL: from the start) with this kind
// and output, held for the caller; `at` is given back. NULL: none.
cx_hook *cx_hook_next(cx_hook_list *list, cx_hook *at, int kind, uint32_t out);
// Ends a walk before its end.
void cx_hook_give_back(cx_hook *at);
bool cx_hook_list_has(const cx_hook_list *list, int kind);
// Removes all.
void cx_hook_list_free(cx_hook_list *list);

#endif
