// launcher/address: the address of the first host of a launch.
#ifndef CX_LAUNCHER_ADDRESS_H
#define CX_LAUNCHER_ADDRESS_H

#include <stddef.h>

// The part of "user@host" that names the host.
const char *cx_launcher_host_name(const char *host);

// Finds the first host's address, by which others can reach it; where it cannot
// be resolved, the name itself. A host's own name often resolves to its
// loopback address. In that case this host is the first one, and the result is
// its address on the route to another host. hosts: [count], at least one.
void cx_launcher_find_address(char *const *hosts, int count, char *out,
                              size_t size);

#endif
