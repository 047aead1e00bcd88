// base/hash: XXH3 of Debian's libxxhash.
#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/status.h"

cx_hash cx_hash_bytes(const void *data, size_t size, uint64_t seed)
{
  XXH128_hash_t h = XXH3_128bits_withSeed(data, size, seed);
  return (cx_hash){ .low = h.low64, .high = h.high64 };
}

void cx_hash_hex(cx_hash hash, char out[33])
{
  snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high,
           (unsigned long long)hash.low);
}

enum { PIECE = 1 << 20 };

static calx_status *hash_stream(FILE *file, const char *path, char *piece,
                                XXH3_state_t *state, cx_hash *out_hash)
{
  XXH3_128bits_reset(state);
  size_t n;
  while ((n = fread(piece, 1, PIECE, file)) > 0) {
    XXH3_128bits_update(state, piece, n);
  }
  if (ferror(file)) {
    return cx_error(CALX_DATA_LOSS, "reading '%s': %s", path, strerror(errno));
  }
  XXH128_hash_t h = XXH3_128bits_digest(state);
  *out_hash = (cx_hash){ .low = h.low64, .high = h.high64 };
  return NULL;
}

calx_status *cx_hash_file(const char *path, cx_hash *out_hash)
{
  *out_hash = (cx_hash){ 0 };
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    return cx_error(CALX_NOT_FOUND, "cannot open '%s': %s", path,
                    strerror(errno));
  }
  char *piece = cx_alloc(PIECE);
  XXH3_state_t *state = XXH3_createState();
  calx_status *status = piece == NULL || state == NULL
                            ? cx_out_of_memory()
                            : hash_stream(file, path, piece, state, out_hash);
  XXH3_freeState(state);
  cx_free(piece);
  fclose(file);
  return status;
}
