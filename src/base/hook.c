// base/hook: doubly linked lists under one lock.
#include "base/hook.h"

#include "base/alloc.h"
#include "base/thread.h"

static cx_mutex lock = CX_MUTEX_INIT;
static cx_hook *live;     // all that can be removed
static uint64_t last_id;  // ids are never used twice

uint64_t cx_hook_add(cx_hook_list *list, const cx_hook *hook)
{
  cx_hook *h = cx_alloc(sizeof *h);
  if (h == NULL) return 0;
  *h = *hook;
  h->refs = 1;
  h->removed = false;
  h->list = list;
  h->after = NULL;
  cx_lock(&lock);
  uint64_t id = h->id = ++last_id;
  h->before = list->last;
  *(list->last != NULL ? &list->last->after : &list->first) = h;
  list->last = h;
  h->next_live = live;
  h->live_link = &live;
  if (live != NULL) live->live_link = &h->next_live;
  live = h;
  cx_unlock(&lock);
  return id;
}

// Under the lock: from now on nobody finds it.
static void unlink_hook(cx_hook *h)
{
  *(h->before != NULL ? &h->before->after : &h->list->first) = h->after;
  *(h->after != NULL ? &h->after->before : &h->list->last) = h->before;
  *h->live_link = h->next_live;
  if (h->next_live != NULL) h->next_live->live_link = h->live_link;
  h->removed = true;
}

static void give_back(cx_hook *h)
{
  cx_lock(&lock);
  bool last = --h->refs == 0;
  cx_unlock(&lock);
  if (!last) return;
  if (h->drop != NULL) h->drop(h->user);
  cx_free(h);
}

void cx_hook_give_back(cx_hook *at)
{
  if (at != NULL) give_back(at);
}

void cx_hook_remove(uint64_t id)
{
  cx_lock(&lock);
  cx_hook *h = live;
  while (h != NULL && h->id != id) h = h->next_live;
  if (h != NULL) unlink_hook(h);
  cx_unlock(&lock);
  if (h != NULL) give_back(h);
}

// The ids of a list rise, so a walk goes on where its hook was, even if that
// one has been removed since.
cx_hook *cx_hook_next(cx_hook_list *list, cx_hook *at, int kind, uint32_t out)
{
  uint64_t seen = at != NULL ? at->id : 0;
  cx_lock(&lock);
  cx_hook *h = at != NULL && !at->removed ? at->after : list->first;
  while (h != NULL && (h->id <= seen || h->kind != kind || h->out != out)) {
    h = h->after;
  }
  if (h != NULL) h->refs++;
  cx_unlock(&lock);
  cx_hook_give_back(at);
  return h;
}

bool cx_hook_list_has(const cx_hook_list *list, int kind)
{
  cx_lock(&lock);
  const cx_hook *h = list->first;
  while (h != NULL && h->kind != kind) h = h->after;
  cx_unlock(&lock);
  return h != NULL;
}

void cx_hook_list_free(cx_hook_list *list)
{
  for (;;) {
    cx_lock(&lock);
    cx_hook *h = list->first;
    if (h != NULL) unlink_hook(h);
    cx_unlock(&lock);
    if (h == NULL) return;
    give_back(h);
  }
}
