// loggers/folder: SAVE_DIR/NAME/version_N.
#ifndef CX_LOGGERS_FOLDER_H
#define CX_LOGGERS_FOLDER_H

#include <stdbool.h>

#include "base/status.h"

typedef struct cx_loggers_folder {
  char *save_dir, *name;
  char *version;  // "0", or a folder's name; NULL: not yet known
  char *sub_dir;  // NULL: none
  char *path;     // of all four; NULL: not yet known
} cx_loggers_folder;

// Copies. `what` is the function, for messages; a NULL name is
// "lightning_logs", version and sub_dir may be NULL.
calx_status *cx_loggers_folder_init(cx_loggers_folder *folder, const char *what,
                                    const char *save_dir, const char *name,
                                    const char *version,
                                    const char *sub_dir) CALX_MUST_USE;
void cx_loggers_folder_free(cx_loggers_folder *folder);
// Finds version and path; the next version is one more than the highest there.
calx_status *cx_loggers_folder_resolve(cx_loggers_folder *folder) CALX_MUST_USE;
// Makes the folder. Where `file` is not NULL and there are files already, a
// line says so and `file` is removed.
calx_status *cx_loggers_folder_make(cx_loggers_folder *folder,
                                    const char *file) CALX_MUST_USE;
// PATH/FILE, freed with cx_free(); NULL: no memory. Once it is made.
char *cx_loggers_folder_file(const cx_loggers_folder *folder, const char *file);

// Adds bytes to the end of a file, which must be there unless `create`. What
// could be written only in part is taken back.
calx_status *cx_loggers_append(const char *path, const void *data, size_t size,
                               bool create) CALX_MUST_USE;

#endif
