// train/files: paths, folders, links and the removal of checkpoints.
#include "train/files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/temporary.h"

// Source: os.path.expanduser.
calx_status *cx_train_expand_home(const char *path, char **out)
{
  const char *home = getenv("HOME");
  cx_text text = { 0 };
  if (path[0] == '~' && (path[1] == '/' || path[1] == '\0') && home != NULL) {
    cx_text_append(&text, home);
    path++;
  }
  cx_text_append(&text, path);
  *out = cx_text_take(&text);
  return *out != NULL ? NULL : cx_out_of_memory();
}

void cx_train_join_path(cx_text *path, const char *part)
{
  if (part == NULL || *part == '\0') return;
  if (path->size > 0 && path->data[path->size - 1] != '/') {
    cx_text_char(path, '/');
  }
  cx_text_append(path, part);
}

// Cuts the last part of a path; what is left.
static size_t cut(char *path, size_t n)
{
  while (n > 0 && path[n - 1] == '/') n--;
  while (n > 0 && path[n - 1] != '/') n--;
  path[n] = '\0';
  return n;
}

calx_status *cx_train_real_path(const char *path, char **out)
{
  char real[PATH_MAX];
  cx_text text = { 0 };
  char *head = cx_strdup(path);
  if (head == NULL) return cx_out_of_memory();
  size_t n = strlen(head);
  while (realpath(n > 0 ? head : ".", real) == NULL) {
    if (errno == ENOENT && n > 0) {
      n = cut(head, n);
      continue;
    }
    cx_free(head);
    return cx_file_failed("find the folder", path);
  }
  cx_free(head);
  cx_text_append(&text, real);
  cx_train_join_path(&text, path + n);
  while (text.size > 1 && text.data[text.size - 1] == '/') {
    text.data[--text.size] = '\0';
  }
  *out = cx_text_take(&text);
  return *out != NULL ? NULL : cx_out_of_memory();
}

bool cx_train_folder_is_used(const char *folder)
{
  DIR *dir = opendir(folder);
  if (dir == NULL) return false;
  bool found = false;
  for (const struct dirent *e; !found && (e = readdir(dir)) != NULL;) {
    found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  }
  closedir(dir);
  return found;
}

// The path of a file as the folder of the link sees it.
static const char *seen_from(const char *file, const char *link)
{
  const char *slash = strrchr(link, '/');
  const size_t n = slash != NULL ? (size_t)(slash - link) + 1 : 0;
  return strncmp(file, link, n) == 0 ? file + n : file;
}

calx_status *cx_train_link(const char *file, const char *link)
{
  char temporary[PATH_MAX];
  if (strcmp(file, link) == 0) return NULL;
  cx_temporary_name(link, temporary);
  if (symlink(seen_from(file, link), temporary) != 0) {
    return cx_file_failed("make the link", link);
  }
  if (rename(temporary, link) == 0) return NULL;
  calx_status *status = cx_file_failed("make the link", link);
  unlink(temporary);
  return status;
}

// Whether a path without links is below a folder.
static bool is_below(const char *path, const char *folder)
{
  char real[PATH_MAX];
  if (realpath(folder, real) == NULL) return false;
  const size_t n = strlen(real);
  return strncmp(path, real, n) == 0 && (path[n] == '/' || n == 1);
}

calx_status *cx_train_remove_file(const char *file, const char *folder,
                                  const char *source)
{
  char real[PATH_MAX];
  if (realpath(file, real) == NULL) {
    if (errno == ENOENT) return NULL;
    return cx_file_failed("remove", file);
  }
  if (source != NULL && strcmp(real, source) == 0) return NULL;
  if (!is_below(real, folder)) return NULL;
  return unlink(file) == 0 ? NULL : cx_file_failed("remove", file);
}
