// world/world: joining and leaving.
//
// A world of one process has no store but its own table and no thread. In
// another one, the order is: connect (process 0 of a foreign launcher serves
// first), which starts the thread that watches; tell each other the places;
// share the window. From then on the news of the job reach the window, the
// board's sleepers and every call that waits.
#include "world/world.h"
#include "base/env.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "store/client.h"
#include "store/core.h"
#include "store/server.h"
#include "world/agreement_hosts.h"
#include "world/endpoint.h"
#include "world/join.h"
#include "world/local_store.h"
#include "world/origin.h"
#include "world/pmi.h"
#include "world/state.h"

enum { JOIN_TIMEOUT_S = 60, DRAIN_FAILED_MS = 2000 };

static calx_window own_head = { .magic = CALX_WINDOW_MAGIC, .processes = 1 };

#define ALONE                                                      \
  {                                                                \
    .processes = 1, .local_processes = 1, .hosts = 1, .devices = 1 \
  }

cx_world_state cx_world_global = {
  .place = ALONE, .head = &own_head, .window = { .fd = -1 }, .groups = 1
};

bool cx_world_joined(void)
{
  return cx_world_global.joined;
}

const cx_world_info *cx_world_self(void)
{
  return &cx_world_global.place;
}

int64_t cx_world_timeout_ms(void)
{
  return cx_env_ms("CALX_COLLECTIVE_TIMEOUT_S", false, 1800);
}

int cx_world_segment_fd(void)
{
  return cx_world_global.window.fd;
}

// ---- news -------------------------------------------------------------------

calx_status *cx_world_failure(void)
{
  calx_code failed = cx_world_segment_failed(cx_world_global.head);
  return failed == CALX_OK ? NULL
                           : cx_error(failed, "%s", cx_world_global.head->news);
}

static void show_news(void *user, calx_code code, const char *news)
{
  (void)user;
  cx_lock(&cx_world_global.lock);
  cx_world_segment_fail(cx_world_global.head, code, news);
  if (cx_world_global.board != NULL)
    cx_world_wake_all(&cx_world_global.board->bell);
  cx_unlock(&cx_world_global.lock);
}

static void take_event(void *user, const char *bytes, size_t size)
{
  (void)user;
  cx_world_hosts_receive_end(bytes, size);
}

void cx_world_fail(calx_code code, const char *news)
{
  calx_status *first = NULL;
  if (cx_world_global.client != NULL) {
    first = cx_store_client_fail(cx_world_global.client, code, news);
    code = calx_status_code(first);
    news = cx_status_sentence(first);
  }
  show_news(NULL, code, news);
  cx_world_local_store_wake();
  calx_status_free(first);
}

// ---- joining ----------------------------------------------------------------

static calx_status *serve(const cx_world_endpoint *route)
{
  cx_store_server_options options = {
    .url = route->url,
    .token = cx_env_text("CALX_TOKEN"),
    .name = "process 0",
    .job = cx_world_origin_job(cx_world_global.place.launcher),
    .processes = cx_world_global.place.processes,
    .heartbeat_ms = cx_store_heartbeat_ms()
  };
  if (!route->by_process || cx_world_global.place.process != 0) return NULL;
  cx_world_endpoint_warn(route->url, cx_world_global.place.hosts,
                         options.token);
  return cx_store_server_start(&options, &cx_world_global.server);
}

static calx_status *connect_store(const cx_world_endpoint *route,
                                  int64_t timeout_ms)
{
  cx_store_client_options options = {
    .url = route->url,
    .token = cx_env_text("CALX_TOKEN"),
    .process = cx_world_global.place.process,
    .processes = cx_world_global.place.processes,
    .origin = cx_world_origin_read(&cx_world_global.place),
    .heartbeat_ms = cx_store_heartbeat_ms(),
    .on_failure = show_news,
    .on_event = take_event
  };
  return cx_store_client_open(&options, timeout_ms, &cx_world_global.client);
}

// From here the news are in the window, also those that came before.
static void use_window(void)
{
  if (cx_world_global.window.head == NULL) return;
  cx_lock(&cx_world_global.lock);
  calx_window *before = cx_world_global.head;
  cx_world_global.head = cx_world_global.window.head;
  calx_code failed = cx_world_segment_failed(before);
  if (failed != CALX_OK)
    cx_world_segment_fail(cx_world_global.head, failed, before->news);
  cx_unlock(&cx_world_global.lock);
}

static calx_status *join_others(const cx_world_endpoint *route)
{
  int64_t timeout_ms = cx_env_ms("CALX_JOIN_TIMEOUT_S", false, JOIN_TIMEOUT_S);
  CALX_TRY(serve(route));
  CALX_TRY(connect_store(route, timeout_ms));
  CALX_TRY(cx_world_join_hosts(route->hosts_told, timeout_ms,
                               &cx_world_global.group_of));
  CALX_TRY(cx_world_join_segment(cx_world_global.group_of, timeout_ms));
  use_window();
  return cx_world_pmi_start();
}

static void forget(void)
{
  cx_world_agreement_close();
  cx_world_local_store_clear();
  cx_world_global.head = &own_head;
  cx_world_segment_close(&cx_world_global.window);
  cx_free(cx_world_global.group_of);
  cx_world_global.group_of = NULL;
  cx_world_global.group = cx_world_global.ranks_calls = 0;
  cx_world_global.launched = false;
  cx_world_global.groups = 1;
  memset(&own_head.news, 0, sizeof own_head.news);
  atomic_store(&own_head.failed, 0);
  atomic_store(&own_head.writing, 0);
  cx_world_global.place = (cx_world_info)ALONE;
  cx_world_global.joined = false;
}

static void disconnect(int64_t drain_ms)
{
  cx_world_pmi_stop();
  if (cx_world_global.client != NULL)
    cx_store_client_close(cx_world_global.client, true);
  cx_world_global.client = NULL;
  if (cx_world_global.server != NULL) {
    cx_store_server_drain(cx_world_global.server, drain_ms);
    cx_store_server_stop(cx_world_global.server);
  }
  cx_world_global.server = NULL;
}

calx_status *cx_world_join(void)
{
  if (cx_world_global.joined) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "this process has joined the world already, as process %d "
                    "of %d",
                    cx_world_global.place.process,
                    cx_world_global.place.processes);
  }
  cx_world_endpoint route;
  cx_file_keep_standard();
  calx_status *status = cx_world_info_read(&cx_world_global.place, &route);
  if (status == NULL && cx_world_global.place.processes > 1) {
    status = join_others(&route);
    if (status != NULL && cx_world_global.client != NULL) {
      cx_world_fail(calx_status_code(status), cx_status_sentence(status));
    }
  }
  if (status != NULL) {
    disconnect(DRAIN_FAILED_MS);
    forget();
    return status;
  }
  cx_world_global.joined = true;
  return NULL;
}

// ---- ranks ------------------------------------------------------------------

// With the number of ranks, since who hears of another's end needs both.
static void set_board(cx_world_agreement *board, void *memory, int devices)
{
  cx_lock(&cx_world_global.lock);
  void *before = cx_world_global.board_memory;
  cx_world_global.place.devices = devices;
  cx_world_global.board = board;
  cx_world_global.board_memory = memory;
  cx_unlock(&cx_world_global.lock);
  cx_free(before);
}

void cx_world_agreement_close(void)
{
  set_board(NULL, NULL, 1);
}

// Its slots lie on cache lines of their own, which cx_alloc does not promise.
static calx_status *heap_board(int devices)
{
  int ranks = cx_world_global.place.processes * devices;
  void *memory = cx_calloc(1, cx_world_agreement_bytes(ranks) + 63);
  if (memory == NULL) return cx_out_of_memory();
  cx_world_agreement *board =
      (cx_world_agreement *)(((uintptr_t)memory + 63) / 64 * 64);
  atomic_store(&board->ranks, (uint32_t)ranks);
  set_board(board, memory, devices);
  return NULL;
}

static calx_status *window_board(int devices)
{
  int ranks = cx_world_global.place.processes * devices;
  size_t room = CALX_WINDOW_ENGINE - CALX_WINDOW_BOARD;
  if (cx_world_agreement_bytes(ranks) > room) {
    return cx_error(
        CALX_RESOURCE_EXHAUSTED, "%d ranks: the board has room for %zu", ranks,
        (room - sizeof(cx_world_agreement)) / sizeof(cx_world_rank_slot));
  }
  cx_world_agreement *board = cx_world_agreement_in(cx_world_global.head);
  atomic_store(&board->ranks, (uint32_t)ranks);
  set_board(board, NULL, devices);
  return NULL;
}

// All processes tell their number of devices.
static calx_status *compare_devices(int devices)
{
  char name[64], *list;
  unsigned char own[4];
  size_t size;
  snprintf(name, sizeof name, "ranks of each process, launch %d",
           ++cx_world_global.ranks_calls);
  cx_store_wire_put32(own, (uint32_t)devices);
  CALX_TRY(cx_world_exchange(name, own, sizeof own, cx_world_timeout_ms(),
                             &list, &size));
  const char *at = list, *value;
  size_t left = size, bytes;
  calx_status *status = NULL;
  int first = devices;
  for (int i = 0; i < cx_world_global.place.processes && status == NULL; i++) {
    bool whole = cx_store_wire_next(&at, &left, &value, &bytes) && bytes == 4;
    int theirs =
        whole ? (int)cx_store_wire_get32((const unsigned char *)value) : 0;
    if (i == 0) first = theirs;
    if (theirs != first) {
      status = cx_error(CALX_INVALID_ARGUMENT,
                        "process 0 has %d device%s, process %d has %d: all "
                        "must have the same number",
                        first, first == 1 ? "" : "s", i, theirs);
    }
  }
  cx_free(list);
  return status;
}

// For the server's news, which name ranks.
static calx_status *tell_devices(int devices)
{
  char text[16];
  if (cx_world_global.place.process != 0) return NULL;
  snprintf(text, sizeof text, "%d", devices);
  cx_world_store_drop(CX_STORE_DEVICES_KEY);
  return cx_world_store_put(CX_STORE_DEVICES_KEY, text, strlen(text));
}

// The board is there before the processes meet: one that was told of all may
// end before another goes on, and its end has to be written somewhere.
static calx_status *ranks_of_all(int devices)
{
  bool first = cx_world_global.board == NULL;
  calx_status *full = NULL;
  if (first) {
    full = cx_world_global.window.head != NULL ? window_board(devices)
                                               : heap_board(devices);
  }
  calx_status *status = tell_devices(devices);
  if (status == NULL) status = compare_devices(devices);
  if (first && status != NULL) cx_world_agreement_close();
  if (status == NULL) {
    status = full;
  } else {
    calx_status_free(full);
  }
  if (status != NULL || cx_world_global.place.devices == devices) return status;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "each process has %d ranks in this job, which cannot "
                  "become %d",
                  cx_world_global.place.devices, devices);
}

calx_status *cx_world_ranks(int devices)
{
  if (devices < 1 || devices > 4096) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%d ranks in each process, 1 to 4096 are wanted", devices);
  }
  CALX_TRY(cx_world_global.client != NULL ? ranks_of_all(devices)
                                          : heap_board(devices));
  cx_world_global.launched = true;
  return NULL;
}

// ---- leaving ----------------------------------------------------------------

// All processes tell how many ranks they have before any of a launch agree, so
// that nobody waits for ranks of a launch that this process did not come to.
static void end_ranks(const calx_status *how)
{
  if (!cx_world_global.launched) return;
  const cx_world_info *here = &cx_world_global.place;
  for (int i = 0; cx_world_global.board != NULL && i < here->devices; i++) {
    int rank = here->process * here->devices + i;
    if (atomic_load(&cx_world_global.board->slots[rank].state) ==
        CX_WORLD_RANK_RUNS) {
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
  forget();
}
