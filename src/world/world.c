// world/world: joining and leaving.
#include "world/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "world/local.h"
#include "world/state.h"

static calx_window own_head = { .magic = CALX_WINDOW_MAGIC, .processes = 1 };

#define ALONE                                                      \
  {                                                                \
    .processes = 1, .local_processes = 1, .hosts = 1, .devices = 1 \
  }

cx_world_state cx_world = {
  .place = ALONE, .head = &own_head, .window = { .fd = -1 }, .groups = 1
};

bool cx_world_joined(void)
{
  return cx_world.joined;
}

const cx_world_place *cx_world_here(void)
{
  return &cx_world.place;
}

int64_t cx_world_timeout_ms(void)
{
  const char *text = getenv("CALX_COLLECTIVE_TIMEOUT_S");
  if (text != NULL && text[0] != '\0') {
    char *end;
    double seconds = strtod(text, &end);
    if (*end == '\0' && seconds > 0 && seconds < 1e9) {
      return (int64_t)(seconds * 1000);
    }
    cx_log_once_per_site("CALX_COLLECTIVE_TIMEOUT_S",
                         "CALX_COLLECTIVE_TIMEOUT_S is '%s', a number of "
                         "seconds is wanted: 1800 is taken",
                         text);
  }
  return 1800 * 1000;
}

// ---- news -------------------------------------------------------------------

calx_status *cx_world_news(void)
{
  calx_code failed = cx_window_failed(cx_world.head);
  return failed == CALX_OK ? NULL : cx_error(failed, "%s", cx_world.head->news);
}

void cx_world_fail(calx_code code, const char *news)
{
  cx_window_fail(cx_world.head, code, news);
  cx_board *board = cx_world.board;
  if (board != NULL) cx_bell_ring(&board->bell);
  cx_local_wake();
}

// ---- joining ----------------------------------------------------------------

calx_status *cx_world_join(void)
{
  if (cx_world.joined) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "this process has joined the world already, as process %d "
                    "of %d",
                    cx_world.place.process, cx_world.place.processes);
  }
  cx_world_place place;
  cx_route route;
  CALX_TRY(cx_place_read(&place, &route));
  if (place.processes > 1) {
    return cx_error(CALX_UNIMPLEMENTED, "process %d of %d: not yet",
                    place.process, place.processes);
  }
  cx_world.place = place;
  cx_world.joined = true;
  return NULL;
}

// ---- ranks ------------------------------------------------------------------

void cx_board_close(void)
{
  cx_free(cx_world.board_memory);
  cx_world.board_memory = NULL;
  cx_world.board = NULL;
}

// Its slots lie on cache lines of their own, which cx_alloc does not promise.
static calx_status *heap_board(int ranks)
{
  void *memory = cx_calloc(1, cx_board_bytes(ranks) + 63);
  if (memory == NULL) return cx_out_of_memory();
  cx_board_close();
  cx_world.board_memory = memory;
  cx_world.board = (cx_board *)(((uintptr_t)memory + 63) / 64 * 64);
  atomic_store(&cx_world.board->ranks, (uint32_t)ranks);
  return NULL;
}

calx_status *cx_world_ranks(int devices)
{
  if (devices < 1 || devices > 4096) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%d ranks in each process, 1 to 4096 are wanted", devices);
  }
  CALX_TRY(heap_board(cx_world.place.processes * devices));
  cx_world.place.devices = devices;
  return NULL;
}

// ---- leaving ----------------------------------------------------------------

void cx_world_leave(const calx_status *how)
{
  if (!cx_world.joined) return;
  if (how != NULL) cx_world_fail(CALX_ABORTED, calx_status_message(how));
  cx_board_close();
  cx_local_clear();
  memset(&own_head.news, 0, sizeof own_head.news);
  atomic_store(&own_head.failed, 0);
  atomic_store(&own_head.writing, 0);
  cx_world.place = (cx_world_place)ALONE;
  cx_world.joined = false;
}
