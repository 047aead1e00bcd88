// store/socket: opens sockets for the store's addresses: tcp://host:port,
// tcp://[host]:port and abstract://name. All are non-blocking and
// close-on-exec.
#ifndef CX_STORE_SOCKET_H
#define CX_STORE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// Checks the form of an address.
calx_status *cx_store_socket_check(const char *url) CALX_MUST_USE;
// These fail with UNAVAILABLE and the reason.
calx_status *cx_store_socket_listen(const char *url, int *out) CALX_MUST_USE;
calx_status *cx_store_socket_connect(const char *url, int64_t timeout_ms,
                                     int *out) CALX_MUST_USE;
// Accepts a connection; -1 with errno. *out_other_user: as below.
int cx_store_socket_accept(int listener, bool *out_other_user);
// Whether the other end is known to belong to another user. TCP never knows.
bool cx_store_socket_is_other_user(int fd);
#endif
