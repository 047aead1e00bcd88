// tests/world/port: finds a free port.
#ifndef CX_TESTS_WORLD_PORT_H
#define CX_TESTS_WORLD_PORT_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static inline int free_port(void)
{
  struct sockaddr_in address = { .sin_family = AF_INET };
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int s = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(s >= 0);
  assert_int_equal(bind(s, (struct sockaddr *)&address, size), 0);
  assert_int_equal(getsockname(s, (struct sockaddr *)&address, &size), 0);
  close(s);
  return ntohs(address.sin_port);
}

#endif
