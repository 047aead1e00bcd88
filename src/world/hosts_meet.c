// world/hosts_meet: the board's part between those that share no memory.
#include "world/hosts_meet.h"

bool cx_hosts_meet(const cx_agreement *a, uint64_t target, int64_t timeout_ms,
                   cx_verdict *out)
{
  (void)a;
  (void)target;
  (void)timeout_ms;
  (void)out;
  return true;
}

void cx_hosts_tell_end(int rank, uint64_t at, cx_board_state state,
                       const char *message)
{
  (void)rank;
  (void)at;
  (void)state;
  (void)message;
}
