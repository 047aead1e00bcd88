// world/pipe: what a connection of nng says of its other end.
#ifndef CX_WORLD_PIPE_H
#define CX_WORLD_PIPE_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

// Whether it is another user's, as far as that can be known: TCP cannot tell.
static inline bool cx_pipe_is_strange(nng_pipe pipe)
{
  uint64_t user;
  return nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_UID, &user) == 0 &&
         user != (uint64_t)getuid();
}

#endif
