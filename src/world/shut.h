// world/shut: closing a socket of nng without waiting for ever.
#ifndef CX_WORLD_SHUT_H
#define CX_WORLD_SHUT_H

#include <nng/nng.h>
#include <stdbool.h>

// Closes the socket and its connections. False: nng still uses whatever was
// given to the socket's callbacks, and always will.
bool cx_shut_socket(nng_socket socket);
// How many sockets of this process nng still has. Once it has one, closing any
// other takes the limit's second.
int cx_shut_left(void);

#endif
