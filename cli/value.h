// cli/value: an argument or a result of a program, in a file or printed.
#ifndef CX_CLI_VALUE_H
#define CX_CLI_VALUE_H

#include "calx/status.h"
#include "hlo/types.h"
#include "pjrt/pjrt.h"

typedef struct cx_cli_value {
  cx_hlo_elem elem;
  cx_pjrt_shape shape;
  size_t bytes;  // of its file
} cx_cli_value;

// The size of argument i's file, where it has one before it is read.
calx_status *cx_cli_value_check(const cx_cli_value *value, size_t i,
                                const char *path) CALX_MUST_USE;
// Argument i's elements; the caller frees them with cx_free().
calx_status *cx_cli_value_read(const cx_cli_value *value, size_t i,
                               const char *path, char **out_data) CALX_MUST_USE;
// Writes result i to FOLDER/REPLICA/i.bin, or prints it where there is no
// folder. replica: "r0", or "". Elements of few bits are extended in data.
calx_status *cx_cli_value_give(const cx_cli_value *value, size_t i,
                               const char *replica, const char *folder,
                               char *data) CALX_MUST_USE;

#endif
