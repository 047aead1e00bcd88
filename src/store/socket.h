// store/socket: the store's addresses as sockets: tcp://host:port,
// tcp://[host]:port and abstract://name. All of them are non-blocking and end
// with an exec.
#ifndef CX_STORE_SOCKET_H
#define CX_STORE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// Whether an address is one at all.
calx_status *cx_store_socket_check(const char *url) CALX_MUST_USE;
// UNAVAILABLE, with the reason.
calx_status *cx_store_socket_listen(const char *url, int *out) CALX_MUST_USE;
calx_status *cx_store_socket_connect(const char *url, int64_t timeout_ms,
                                     int *out) CALX_MUST_USE;
// The next connection; -1: errno says why. `out_strange`: as below.
int cx_store_socket_accept(int listener, bool *out_strange);
// Whether the other end is another user's, as far as that can be known: TCP
// cannot tell.
bool cx_store_socket_is_other_user(int fd);
#endif
