// data/http: the rest of a file from an HTTP server, by libcurl.
//
// libcurl is loaded when the first download begins: a program that downloads
// nothing does not load the libraries that it needs in turn.
#ifndef CX_DATA_HTTP_H
#define CX_DATA_HTTP_H

#include <stdint.h>

#include "base/status.h"

// Appends to a descriptor what the URL has from byte `*at` on, and counts it
// there. Where the server cannot begin there, *at becomes 0 and the descriptor
// empty first. Over `most` bytes in all are DATA_LOSS.
// @errors NOT_FOUND 404 and 410  PERMISSION_DENIED 401 and 403  UNAVAILABLE any
//         other answer, a connection that is refused, breaks or is silent for a
//         minute; what came is kept  INVALID_ARGUMENT a URL that is neither
//         http nor https  UNIMPLEMENTED there is no libcurl: with the package
calx_status *cx_data_http_get(const char *url, int fd, const char *path,
                              uint64_t most, uint64_t *at) CALX_MUST_USE;

#endif
