// world: processes that form one world, each with its part of the devices.
#ifndef CX_TESTS_ENGINE_API_WORLD_H
#define CX_TESTS_ENGINE_API_WORLD_H

#include "host.h"
#include "store.h"
#include "world/segment.h"

enum { WORLD_MOST = 8 };

typedef struct world {
  int processes, devices;  // of each process
  cx_world_segment segment;
  unsigned char *shared;  // for the tests' own words
  int pids[WORLD_MOST];
  int hosts, per_host[WORLD_MOST];  // processes; 0: one host
  int port;                         // of the store that joins the hosts
  bool apart;                       // the processes of a host have no segment
  store *store;  // by which the processes meet; NULL: they are told of others
} world;

// What a process does. It is a child of the test, and ends with its return.
typedef struct peer {
  const world *world;
  int process;
  PJRT_Client *client;
  const void *user;
} peer;
typedef void peer_fn(peer *self);

world world_new(int processes, int devices, size_t shared_bytes);
// Hosts of so many processes each. They are of this machine, but share nothing.
world world_of_hosts(int hosts, const int *per_host, int devices,
                     size_t shared_bytes);
void world_start(world *w, peer_fn *fn, const void *user);
// Waits for the end of a process by this signal.
void world_lost(world *w, int process, int signal);
// All others must have ended well.
void world_join(world *w);
void world_free(world *w);

PJRT_Client *world_client(const world *w, int process);
PJRT_LoadedExecutable *world_program(PJRT_Client *client, const char *text,
                                     int replicas);
// All local devices' shares; args[k] and outs[k] are lists of device k.
PJRT_Error *world_run(PJRT_LoadedExecutable *program, size_t n_devices,
                      size_t n_args, PJRT_Buffer *const *const *args,
                      PJRT_Buffer **const *outs);

#endif
