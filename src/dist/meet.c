// dist/meet: calx_rendezvous and calx_mesh_reduce: ranks exchange bytes through
// the store, without a device.
//
// Each rank counts its meetings. It puts its payload into the store under the
// meeting's number and its ordinal. Then the ranks agree on the tag, which is a
// barrier: all payloads are in the store when a rank reads them. When a rank
// starts the next meeting, all ranks have read the payloads of the one before.
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "dist/dist.h"

static struct {
  int launch;      // this process's n-th
  uint64_t *held;  // meetings of each local rank, touched by its own thread
} meetings;

calx_status *cx_dist_meet_begin(int ranks)
{
  meetings.launch++;
  meetings.held = cx_calloc((size_t)ranks, sizeof *meetings.held);
  return meetings.held != NULL ? NULL : cx_out_of_memory();
}

enum { KEY_SIZE = 96 };

static void name_key(char key[KEY_SIZE], uint64_t meeting, int ordinal)
{
  snprintf(key, KEY_SIZE, "meet/%d/%llu/%d", meetings.launch,
           (unsigned long long)meeting, ordinal);
}

// Removes this rank's payload of a meeting that all ranks have left.
static void drop(uint64_t meeting, int ordinal)
{
  char key[KEY_SIZE];
  name_key(key, meeting, ordinal);
  cx_world_store_drop(key);
}

// Another process may not have read the last ones yet: those stay in the store
// until the job ends.
void cx_dist_meet_end(void)
{
  const cx_world_info *here = cx_world_self();
  for (int i = 0; i < here->devices && here->processes == 1; i++) {
    // Where the last meeting failed, the one before may be there too.
    if (meetings.held[i] > 0) drop(meetings.held[i] - 1, i);
    if (meetings.held[i] > 1) drop(meetings.held[i] - 2, i);
  }
  cx_free(meetings.held);
  meetings.held = NULL;
}

// ---- one meeting ------------------------------------------------------------

typedef struct rank_meeting {
  const char *call, *tag;
  const void *payload;
  size_t bytes;
  char **out_payloads;  // NULL: a barrier
  size_t *out_sizes;    // may be NULL
} rank_meeting;

static cx_hash hash_of(const rank_meeting *m)
{
  return cx_hash_bytes(m->tag, strlen(m->tag), (unsigned char)m->call[0]);
}

static calx_status *agree(const rank_meeting *m, int ordinal)
{
  cx_text what = { 0 };
  const calx_site *site = cx_site();
  cx_text_format(&what, "%s '%s'", m->call, m->tag);
  if (site->file != NULL) {
    cx_text_format(&what, " at %s:%d", site->file, site->line);
  }
  cx_world_proposal a = { .rank = ordinal,
                          .key = hash_of(m),
                          .what = cx_text_str(&what) };
  calx_status *status = cx_text_failed(&what)
                            ? cx_out_of_memory()
                            : cx_world_agree(&a, cx_world_timeout_ms(), NULL);
  cx_text_free(&what);
  return status;
}

static calx_status *read_payload(const rank_meeting *m, uint64_t number, int i)
{
  char key[KEY_SIZE];
  size_t size;
  name_key(key, number, i);
  CALX_TRY(cx_world_store_get(key, cx_world_timeout_ms(), &m->out_payloads[i],
                              &size));
  if (m->out_sizes != NULL) m->out_sizes[i] = size;
  return NULL;
}

static calx_status *read_all(const rank_meeting *m, uint64_t number, int n)
{
  calx_status *status = NULL;
  for (int i = 0; i < n && status == NULL; i++) {
    status = read_payload(m, number, i);
  }
  for (int i = 0; i < n && status != NULL; i++) {
    cx_free(m->out_payloads[i]);
    m->out_payloads[i] = NULL;
    if (m->out_sizes != NULL) m->out_sizes[i] = 0;
  }
  return status;
}

// In a world of one rank.
static calx_status *meet_alone(const rank_meeting *m)
{
  if (m->out_payloads == NULL) return NULL;
  char *copy = cx_calloc(1, m->bytes + 1);
  if (copy == NULL) return cx_out_of_memory();
  if (m->bytes != 0) memcpy(copy, m->payload, m->bytes);
  m->out_payloads[0] = copy;
  if (m->out_sizes != NULL) m->out_sizes[0] = m->bytes;
  return NULL;
}

static calx_status *check(const rank_meeting *m)
{
  if (m->tag == NULL || (m->payload == NULL && m->bytes != 0)) {
    return cx_invalid("%s: the %s is NULL", m->call,
                      m->tag == NULL ? "tag" : "payload");
  }
  if (meetings.held == NULL && calx_world_size() > 1) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s '%s': it is called outside of calx_launch", m->call,
                    m->tag);
  }
  return NULL;
}

static calx_status *meet(const rank_meeting *m)
{
  int n = calx_world_size(), ordinal = calx_global_ordinal();
  for (int i = 0; m->out_payloads != NULL && i < n; i++) {
    m->out_payloads[i] = NULL;
    if (m->out_sizes != NULL) m->out_sizes[i] = 0;
  }
  CALX_TRY(check(m));
  if (n == 1) return meet_alone(m);
  uint64_t number = meetings.held[cx_dist_local_rank()]++;
  char key[KEY_SIZE];
  name_key(key, number, ordinal);
  CALX_TRY(cx_world_store_put(key, m->bytes != 0 ? m->payload : "", m->bytes));
  CALX_TRY(agree(m, ordinal));
  if (number > 0) drop(number - 1, ordinal);
  return m->out_payloads != NULL ? read_all(m, number, n) : NULL;
}

// ---- public -----------------------------------------------------------------

calx_status *calx_rendezvous(const char *tag, const void *payload, size_t bytes,
                             char **out_payloads, size_t *out_sizes)
{
  rank_meeting m = {
    "rendezvous", tag, payload, bytes, out_payloads, out_sizes
  };
  return meet(&m);
}

static calx_status *check_counts(const char *tag, const size_t *sizes, int n)
{
  for (int i = 1; i < n; i++) {
    if (sizes[i] == sizes[0]) continue;
    return cx_invalid(
        "mesh_reduce '%s': rank %d brings %zu numbers, rank 0 %zu", tag, i,
        sizes[i] / sizeof(double), sizes[0] / sizeof(double));
  }
  return NULL;
}

calx_status *calx_mesh_reduce(const char *tag, const double *values,
                              size_t count, calx_mesh_reduce_fn *reduce,
                              double *out)
{
  size_t bytes, n = (size_t)calx_world_size();
  if (!cx_mul_size(count, sizeof *values, &bytes)) return cx_out_of_memory();
  if (reduce == NULL || (out == NULL && count != 0)) {
    return cx_invalid("mesh_reduce: the %s is NULL",
                      reduce == NULL ? "function" : "result");
  }
  char **payloads = cx_calloc(n, sizeof *payloads);
  size_t *sizes = cx_calloc(n, sizeof *sizes);
  rank_meeting m = { "mesh_reduce", tag, values, bytes, payloads, sizes };
  calx_status *status =
      payloads == NULL || sizes == NULL ? cx_out_of_memory() : meet(&m);
  if (status == NULL) status = check_counts(tag, sizes, (int)n);
  if (status == NULL) {
    reduce((const double *const *)(void *)payloads, n, count, out);
  }
  for (size_t i = 0; payloads != NULL && i < n; i++) cx_free(payloads[i]);
  cx_free(payloads);
  cx_free(sizes);
  return status;
}
