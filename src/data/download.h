// data/download: files of the web, whole and checked.
#ifndef CX_DATA_DOWNLOAD_H
#define CX_DATA_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct cx_data_web_file {
  const char *name;  // in the folder, and behind the mirror's URL
  uint64_t bytes;
  const char *sha256;
} cx_data_web_file;

// Puts MIRROR/NAME at FOLDER/NAME, unless that is there and has the checksum.
// The content is written to FOLDER/NAME.part, checked, and then renamed; what
// an earlier call left there is gone on from. Other processes that want the
// same file wait for this one.
// @errors DATA_LOSS another size or checksum; as cx_data_http_get
calx_status *cx_data_download(const char *folder, const char *mirror,
                              const cx_data_web_file *file) CALX_MUST_USE;

// Each file that is not there, unpacked (without ".gz") or packed. The folder
// is made.
calx_status *cx_data_download_all(const char *folder, const char *mirror,
                                  const cx_data_web_file *files,
                                  size_t count) CALX_MUST_USE;

// MNIST's four.
extern const cx_data_web_file cx_data_mnist_files[4];

#endif
