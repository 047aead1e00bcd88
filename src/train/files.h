// train/files: paths, folders and files of checkpoints.
#ifndef CX_TRAIN_FILES_H
#define CX_TRAIN_FILES_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"

#define CX_TRAIN_CKPT ".ckpt"

// "~/logs" is in the home folder. Freed with cx_free().
calx_status *cx_train_expand_home(const char *path, char **out) CALX_MUST_USE;
// os.path.join() of a part, which may be NULL.
void cx_train_join_path(cx_text *path, const char *part);
// The absolute path without links, as far as there is anything of it.
calx_status *cx_train_real_path(const char *path, char **out) CALX_MUST_USE;
// Whether a folder has anything in it.
bool cx_train_folder_is_used(const char *folder);
// Makes `link` a link to a file of its folder or below, which stays valid where
// the folder is moved. What was there is replaced as a whole.
calx_status *cx_train_link(const char *file, const char *link) CALX_MUST_USE;
// Removes a file of a folder, or a link there, but not `source`, the path of
// what the run began with; NULL: nothing. What is elsewhere stays.
calx_status *cx_train_remove_file(const char *file, const char *folder,
                                  const char *source) CALX_MUST_USE;

#endif
