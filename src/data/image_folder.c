// data/image_folder: images in a folder for each class.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/image_list.h"

// Links are followed: a loop of them ends here.
enum { MAX_DEPTH = 32 };

// ---- names of a folder ------------------------------------------------------

typedef struct name_list {
  char **items;
  size_t count, room;
} name_list;

static void names_free(name_list *n)
{
  for (size_t i = 0; i < n->count; i++) cx_free(n->items[i]);
  cx_free(n->items);
  *n = (name_list){ 0 };
}

static calx_status *names_add(name_list *n, const char *name)
{
  char *copy = cx_strdup(name);
  if (copy == NULL ||
      !cx_grow(&n->items, &n->room, n->count + 1, sizeof *n->items)) {
    cx_free(copy);
    return cx_out_of_memory();
  }
  n->items[n->count++] = copy;
  return NULL;
}

static int by_bytes(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join(const char *folder, const char *name)
{
  cx_text path = { 0 };
  cx_text_format(&path, "%s/%s", folder, name);
  return cx_text_take(&path);
}

static calx_status *sort_entry(const char *folder, const char *name,
                               name_list *folders, name_list *files)
{
  char *path = join(folder, name);
  if (path == NULL) return cx_out_of_memory();
  struct stat info;
  bool known = stat(path, &info) == 0;
  cx_free(path);
  if (!known) return NULL;  // a link to nowhere
  if (S_ISDIR(info.st_mode)) return names_add(folders, name);
  return S_ISREG(info.st_mode) ? names_add(files, name) : NULL;
}

// The names in a folder, in the order of their bytes.
static calx_status *list_folder(const char *folder, name_list *folders,
                                name_list *files)
{
  DIR *dir = opendir(folder);
  if (dir == NULL) return cx_file_failed("open the folder", folder);
  calx_status *status = NULL;
  errno = 0;
  for (struct dirent *e; status == NULL && (e = readdir(dir)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    status = sort_entry(folder, e->d_name, folders, files);
    errno = 0;
  }
  if (status == NULL && errno != 0) {
    status = cx_file_failed("read the folder", folder);
  }
  closedir(dir);
  if (folders->count > 1) {
    qsort(folders->items, folders->count, sizeof(char *), by_bytes);
  }
  if (files->count > 1) {
    qsort(files->items, files->count, sizeof(char *), by_bytes);
  }
  return status;
}

// ---- the images of a class --------------------------------------------------

static bool is_image(const char *name)
{
  const char *dot = strrchr(name, '.');
  return dot != NULL &&
         (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
          strcasecmp(dot, ".png") == 0);
}

static calx_status *add_images(cx_data_image_list *list, const char *folder,
                               const name_list *files)
{
  for (size_t i = 0; i < files->count; i++) {
    if (!is_image(files->items[i])) continue;
    CALX_TRY(cx_data_image_add(list, join(folder, files->items[i])));
  }
  return NULL;
}

// The paths of a folder and of those below.
static calx_status *find_folders(const char *path, int depth, name_list *out)
{
  if (depth > MAX_DEPTH) {
    return cx_invalid("image folder: '%s' is more than %d folders deep", path,
                      MAX_DEPTH);
  }
  CALX_TRY(names_add(out, path));
  name_list folders = { 0 }, files = { 0 };
  calx_status *status = list_folder(path, &folders, &files);
  for (size_t i = 0; status == NULL && i < folders.count; i++) {
    char *below = join(path, folders.items[i]);
    status = below != NULL ? find_folders(below, depth + 1, out)
                           : cx_out_of_memory();
    cx_free(below);
  }
  names_free(&folders);
  names_free(&files);
  return status;
}

// In the order of torchvision: by the folder's path, then by name.
static calx_status *add_class(cx_data_image_list *list, const char *path)
{
  name_list all = { 0 };
  calx_status *status = find_folders(path, 0, &all);
  if (all.count > 1) qsort(all.items, all.count, sizeof(char *), by_bytes);
  for (size_t i = 0; status == NULL && i < all.count; i++) {
    name_list folders = { 0 }, files = { 0 };
    status = list_folder(all.items[i], &folders, &files);
    if (status == NULL) status = add_images(list, all.items[i], &files);
    names_free(&folders);
    names_free(&files);
  }
  names_free(&all);
  return status;
}

static calx_status *set_classes(cx_data_image_list *list, int64_t begin,
                                size_t *room, int64_t class)
{
  if (!cx_grow(&list->classes, room, (size_t)list->size,
               sizeof *list->classes)) {
    return cx_out_of_memory();
  }
  for (int64_t i = begin; i < list->size; i++) list->classes[i] = class;
  return NULL;
}

static calx_status *add_classes(cx_data_image_list *list, const char *root)
{
  size_t room = 0;
  for (int64_t k = 0; k < list->n_classes; k++) {
    int64_t begin = list->size;
    char *path = join(root, list->class_names[k]);
    calx_status *status =
        path != NULL ? add_class(list, path) : cx_out_of_memory();
    cx_free(path);
    if (status != NULL) return status;
    if (list->size == begin) {
      return cx_error(CALX_NOT_FOUND,
                      "image folder: the class '%s' of '%s' has no file of "
                      ".jpg, .jpeg or .png",
                      list->class_names[k], root);
    }
    CALX_TRY(set_classes(list, begin, &room, k));
  }
  return NULL;
}

static calx_status *scan(const char *root, cx_data_image_list *list)
{
  name_list folders = { 0 }, files = { 0 };
  calx_status *status = list_folder(root, &folders, &files);
  names_free(&files);
  list->class_names = folders.items;
  list->n_classes = (int64_t)folders.count;
  if (status != NULL) return status;
  if (folders.count == 0) {
    return cx_error(CALX_NOT_FOUND,
                    "image folder: '%s' has no folder, which would be a class",
                    root);
  }
  return add_classes(list, root);
}

calx_dataset *calx_dataset_image_folder_with(
    const char *root, const calx_image_dataset_options *options)
{
  cx_data_image_list list = { 0 };
  calx_status *status = cx_data_image_options("image folder", options, &list);
  if (status == NULL) {
    status = root != NULL ? scan(root, &list)
                          : cx_invalid("image folder: the path is NULL");
  }
  return cx_data_image_dataset(status, &list);
}
