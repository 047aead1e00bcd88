// world/world: joining and leaving.
//
// A world of one process has no thread, and a table in place of a store. In a
// larger world a process connects to the store (process 0 first serves it,
// under another program's launcher), which starts the watch thread; it
// exchanges rank infos with the others; then the processes of a host share a
// segment. From then on a failure of the job reaches the segment, the ranks
// that wait to agree, and every call that waits.
#include "world/world.h"

#include "base/env.h"
#include "base/file.h"
#include "store/client.h"
#include "store/server.h"
#include "world/endpoint.h"
#include "world/join.h"
#include "world/local_store.h"
#include "world/origin.h"
#include "world/pmi.h"
#include "world/rank_end.h"
#include "world/state.h"

enum { JOIN_TIMEOUT_S = 60, DRAIN_FAILED_MS = 2000 };

static void take_event(void *user, const char *bytes, size_t size)
{
  (void)user;
  cx_world_rank_end_receive(bytes, size);
}

// ---- joining ----------------------------------------------------------------

static calx_status *serve(const cx_world_endpoint *endpoint)
{
  const cx_world_info *self = &cx_world_global.info;
  cx_store_server_options options = { .url = endpoint->url,
                                      .token = cx_env_text("CALX_TOKEN"),
                                      .name = "process 0",
                                      .job =
                                          cx_world_origin_job(self->launcher),
                                      .processes = self->processes,
                                      .heartbeat_ms = cx_store_heartbeat_ms() };
  if (!endpoint->by_process || self->process != 0) return NULL;
  cx_world_endpoint_warn(endpoint->url, self->hosts, options.token);
  return cx_store_server_start(&options, &cx_world_global.server);
}

static calx_status *connect_store(const cx_world_endpoint *endpoint,
                                  int64_t timeout_ms)
{
  const cx_world_info *self = &cx_world_global.info;
  cx_store_client_options options = { .url = endpoint->url,
                                      .token = cx_env_text("CALX_TOKEN"),
                                      .process = self->process,
                                      .processes = self->processes,
                                      .origin = cx_world_origin_read(self),
                                      .heartbeat_ms = cx_store_heartbeat_ms(),
                                      .on_failure = cx_world_take_failure,
                                      .on_event = take_event };
  return cx_store_client_open(&options, timeout_ms, &cx_world_global.client);
}

// The segment takes over a failure that was recorded before.
static void use_segment(void)
{
  cx_world_state *w = &cx_world_global;
  if (w->segment.head == NULL) return;
  cx_lock(&w->lock);
  const calx_segment_head *before = w->head;
  w->head = w->segment.head;
  calx_code failed = cx_world_segment_failed(before);
  if (failed != CALX_OK)
    cx_world_segment_fail(w->head, failed, before->message);
  cx_unlock(&w->lock);
}

static calx_status *join_others(const cx_world_endpoint *endpoint)
{
  int64_t timeout_ms = cx_env_ms("CALX_JOIN_TIMEOUT_S", false, JOIN_TIMEOUT_S);
  CALX_TRY(serve(endpoint));
  CALX_TRY(connect_store(endpoint, timeout_ms));
  CALX_TRY(cx_world_join_hosts(endpoint->hosts_known, timeout_ms,
                               &cx_world_global.group_of));
  CALX_TRY(cx_world_join_segment(cx_world_global.group_of, timeout_ms));
  use_segment();
  return cx_world_pmi_start();
}

// ---- leaving ----------------------------------------------------------------

static void disconnect(int64_t drain_ms)
{
  cx_world_state *w = &cx_world_global;
  cx_world_pmi_stop();
  if (w->client != NULL) cx_store_client_close(w->client, true);
  w->client = NULL;
  if (w->server != NULL) {
    cx_store_server_drain(w->server, drain_ms);
    cx_store_server_stop(w->server);
  }
  w->server = NULL;
  cx_world_local_store_clear();
  cx_world_state_reset();
}

calx_status *cx_world_join(void)
{
  cx_world_state *w = &cx_world_global;
  if (w->joined) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "this process has joined the world already, as process %d "
                    "of %d",
                    w->info.process, w->info.processes);
  }
  cx_world_endpoint endpoint;
  cx_file_keep_standard();
  calx_status *status = cx_world_info_read(&w->info, &endpoint);
  if (status == NULL && w->info.processes > 1) status = join_others(&endpoint);
  if (status != NULL) {
    if (w->client != NULL) {
      cx_world_fail(calx_status_code(status), cx_status_sentence(status));
    }
    disconnect(DRAIN_FAILED_MS);
    return status;
  }
  w->joined = true;
  return NULL;
}

// No other process waits for ranks of a launch that this process did not reach:
// all exchange their numbers of ranks before the launch's first agreement.
static void end_ranks(const calx_status *how)
{
  const cx_world_state *w = &cx_world_global;
  if (!w->launched) return;
  for (int i = 0; w->agreement != NULL && i < w->info.devices; i++) {
    int rank = w->info.process * w->info.devices + i;
    if (atomic_load(&w->agreement->slots[rank].state) == CX_WORLD_RANK_RUNS) {
      cx_world_rank_end(rank, how);
    }
  }
}

void cx_world_leave(const calx_status *how)
{
  if (!cx_world_global.joined) return;
  if (how != NULL) cx_world_fail(CALX_ABORTED, calx_status_message(how));
  end_ranks(how);
  bool well = cx_world_segment_failed(cx_world_global.head) == CALX_OK;
  disconnect(well ? cx_world_timeout_ms() : DRAIN_FAILED_MS);
}
