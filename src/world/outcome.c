// world/outcome: see outcome.h.
#include "world/outcome.h"

#include <stdio.h>
#include <string.h>

void cx_world_outcome_set(cx_world_outcome *out, calx_code code,
                          const char *text)
{
  out->code = (int32_t)code;
  snprintf(out->text, sizeof out->text, "%s", text);
}

cx_world_rank_key cx_world_rank_key_of(const cx_world_proposal *a)
{
  cx_world_rank_key own = { .key = a->key, .rank = a->rank };
  snprintf(own.what, sizeof own.what, "%s", a->what);
  return own;
}

void cx_world_outcome_differs(cx_world_outcome *out, uint64_t target,
                              const cx_world_rank_key *a,
                              const cx_world_rank_key *b)
{
  const cx_world_rank_key *first = a->rank < b->rank ? a : b;
  const cx_world_rank_key *second = first == a ? b : a;
  int ranks[] = { (int)first->rank, (int)second->rank };
  char hex[2][33];
  cx_hash_hex(first->key, hex[0]);
  cx_hash_hex(second->key, hex[1]);
  out->code = CALX_ABORTED;
  memcpy(out->differ, ranks, sizeof ranks);
  out->key = first->key;
  snprintf(
      out->text, sizeof out->text,
      "the ranks do not do the same: rank %d submits %s (key %.16s), rank "
      "%d submits %s (key %.16s), in agreement %llu%s",
      ranks[0], first->what, hex[0], ranks[1], second->what, hex[1],
      (unsigned long long)cx_world_agreement_count(target),
      strcmp(first->what, second->what) == 0
          ? ": shapes or other ops before it differ; have the ranks batches "
            "of one size?"
          : "");
}

void cx_world_outcome_ended(cx_world_outcome *out, const cx_world_proposal *a,
                            uint64_t target, int rank, uint64_t at)
{
  char count[64] = "";
  // In a later launch its count is a new one.
  if (cx_world_epoch(at) <= cx_world_epoch(target)) {
    unsigned long long n = (unsigned long long)cx_world_agreement_count(at);
    snprintf(count, sizeof count, " after %llu agreement%s", n,
             n == 1 ? "" : "s");
  }
  out->code = CALX_ABORTED;
  snprintf(out->text, sizeof out->text,
           "rank %d has ended its function without an error%s, but rank %d "
           "waits for it at %s (agreement %llu): do the ranks have different "
           "numbers of batches?",
           rank, count, a->rank, a->what,
           (unsigned long long)cx_world_agreement_count(target));
}

void cx_world_outcome_failed(cx_world_outcome *out, int rank,
                             const char *message)
{
  out->code = CALX_ABORTED;
  snprintf(out->text, sizeof out->text, "rank %d failed: %s", rank, message);
}

void cx_world_outcome_late(cx_world_outcome *out, const cx_world_proposal *a,
                           uint64_t target, const char *who)
{
  out->code = CALX_DEADLINE_EXCEEDED;
  snprintf(out->text, sizeof out->text,
           "%.600s did not arrive in time at %.150s, where rank %d waited "
           "(agreement %llu)",
           who, a->what, a->rank,
           (unsigned long long)cx_world_agreement_count(target));
}
