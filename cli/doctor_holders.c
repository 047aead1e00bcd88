// cli/doctor_holders: the processes that hold a device, as /proc shows them: a
// device's file is open (fd) or mapped (maps), or libtpu.so is mapped.
//
// libtpu gives a TPU to one process. A card may have several, but each keeps
// its memory there.
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "doctor.h"
#include "lines.h"

// ---- what is a device -------------------------------------------------------

enum { NO_DEVICE, OF_CARD, OF_TPU };

static bool begins_with_digit_after(const char *path, const char *start)
{
  size_t n = strlen(start);
  return strncmp(path, start, n) == 0 && isdigit((unsigned char)path[n]);
}

// /dev/vfio/vfio is opened by whoever asks for anything of vfio.
static int device_of(const char *path)
{
  if (begins_with_digit_after(path, "/dev/accel") ||
      begins_with_digit_after(path, "/dev/accel/accel") ||
      begins_with_digit_after(path, "/dev/vfio/") ||
      strncmp(path, "/dev/vfio/devices/", 18) == 0) {
    return OF_TPU;
  }
  if (strncmp(path, "/dev/nvidia", 11) == 0) return OF_CARD;
  const char *slash = strrchr(path, '/');
  bool is_libtpu = slash != NULL && strncmp(slash, "/libtpu", 7) == 0 &&
                   strstr(slash, ".so") != NULL;
  return is_libtpu ? OF_TPU : NO_DEVICE;
}

static bool is_listed(const cx_text *list, const char *word, size_t size)
{
  for (const char *p = cx_text_str(list); (p = strstr(p, word)) != NULL;
       p += size) {
    if (p[size] == '\0' || p[size] == ',') return true;
  }
  return false;
}

static void note_path(cx_cli_holder *h, const char *path)
{
  int device = device_of(path);
  if (device == NO_DEVICE) return;
  if (device == OF_TPU) h->has_tpu = true;
  char shown[256];
  cx_text_plain(path, strlen(path), shown, sizeof shown);
  if (is_listed(&h->holds, shown, strlen(shown))) return;
  if (h->holds.size > 0) cx_text_append(&h->holds, ", ");
  cx_text_append(&h->holds, shown);
}

// ---- one process ------------------------------------------------------------

// A line of maps: "from-to rights offset device inode   path".
static void read_maps(const cx_cli_doctor_state *d, cx_cli_holder *h)
{
  cx_cli_doctor_path at = cx_cli_doctor_at(d, "/proc/%ld/maps", h->pid);
  FILE *file = fopen(at.s, "re");
  if (file == NULL) return;
  cx_text line = { 0 };
  while (cx_cli_line_read(file, &line)) {
    const char *path = line.size > 0 ? strchr(line.data, '/') : NULL;
    if (path != NULL) note_path(h, path);
  }
  cx_text_free(&line);
  fclose(file);
}

// False: they are not shown to this user.
static bool read_fds(const cx_cli_doctor_state *d, cx_cli_holder *h)
{
  cx_cli_doctor_path at = cx_cli_doctor_at(d, "/proc/%ld/fd", h->pid);
  DIR *folder = opendir(at.s);
  if (folder == NULL) return errno != EACCES && errno != EPERM;
  for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
    char path[PATH_MAX];
    ssize_t n = readlinkat(dirfd(folder), e->d_name, path, sizeof path - 1);
    if (n <= 0) continue;
    path[n] = '\0';
    note_path(h, path);
  }
  closedir(folder);
  return true;
}

// "pid (name) state parent … start …", where the name may hold anything.
static bool read_stat(const cx_cli_doctor_state *d, cx_cli_holder *h,
                      char *out_state)
{
  cx_text text = { 0 };
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/stat", h->pid);
  bool read = cx_cli_doctor_read(d, path, &text);
  const char *rest = read ? strrchr(cx_text_str(&text), ')') : NULL;
  read = rest != NULL &&
         sscanf(rest,
                ") %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                "%*d %*d %*d %*d %" SCNu64,
                out_state, &h->parent, &h->start) == 3;
  cx_text_free(&text);
  return read;
}

static void read_command(const cx_cli_doctor_state *d, cx_cli_holder *h)
{
  cx_text text = { 0 };
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/cmdline", h->pid);
  if (cx_cli_doctor_read(d, path, &text)) {
    while (text.size > 0 && text.data[text.size - 1] == '\0') text.size--;
    for (size_t i = 0; i < text.size; i++) {
      if (text.data[i] == '\0') text.data[i] = ' ';
    }
    cx_text_plain(cx_text_str(&text), text.size, h->command, sizeof h->command);
  }
  cx_text_free(&text);
}

// The line of a service is "0::/system.slice/NAME.service".
static void read_service(const cx_cli_doctor_state *d, cx_cli_holder *h)
{
  cx_text text = { 0 };
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/cgroup", h->pid);
  if (cx_cli_doctor_read(d, path, &text)) {
    const char *name = strstr(cx_text_str(&text), "/system.slice/");
    size_t n = 0;
    if (name != NULL) {
      name += strlen("/system.slice/");
      n = strcspn(name, "/\n");
    }
    if (n > 8 && strncmp(name + n - 8, ".service", 8) == 0) {
      cx_text_plain(name, n, h->service, sizeof h->service);
    }
  }
  cx_text_free(&text);
}

static void read_user(const cx_cli_doctor_state *d, cx_cli_holder *h)
{
  struct stat info;
  cx_cli_doctor_path at = cx_cli_doctor_at(d, "/proc/%ld", h->pid);
  if (stat(at.s, &info) != 0) return;
  const struct passwd *user = d->root[0] == '\0' ? getpwuid(info.st_uid) : NULL;
  if (user != NULL) {
    cx_text_plain(user->pw_name, strlen(user->pw_name), h->user,
                  sizeof h->user);
  } else {
    snprintf(h->user, sizeof h->user, "user %u", (unsigned)info.st_uid);
  }
}

static int64_t age_of(const cx_cli_doctor_state *d, uint64_t start)
{
  cx_text text = { 0 };
  int64_t seconds = -1;
  if (cx_cli_doctor_read(d, "/proc/uptime", &text)) {
    double up = strtod(cx_text_str(&text), NULL);
    double age = up - (double)start / (double)sysconf(_SC_CLK_TCK);
    if (age >= 0) seconds = (int64_t)age;
  }
  cx_text_free(&text);
  return seconds;
}

// ---- all of them ------------------------------------------------------------

// Takes what the holder has.
static void add(cx_cli_holders *all, cx_cli_holder *h)
{
  if (cx_text_failed(&h->holds) ||
      !cx_grow(&all->items, &all->capacity, all->n + 1, sizeof *all->items)) {
    cx_text_free(&h->holds);
    all->failed = true;
    return;
  }
  all->items[all->n++] = *h;
}

static void look_at(const cx_cli_doctor_state *d, long pid, cx_cli_holders *all)
{
  cx_cli_holder h = { .pid = pid };
  char state;
  if (!read_stat(d, &h, &state) || state == 'Z') return;
  read_maps(d, &h);
  bool seen = read_fds(d, &h);
  read_command(d, &h);
  // Threads of the kernel have no command.
  if (!seen && h.command[0] != '\0') all->unseen++;
  if (h.holds.size == 0 && !cx_text_failed(&h.holds)) {
    cx_text_free(&h.holds);
    return;
  }
  read_user(d, &h);
  read_service(d, &h);
  h.seconds = age_of(d, h.start);
  add(all, &h);
}

// This process's parents: the shell, the notebook that it was started from.
static void mark_ours(const cx_cli_doctor_state *d, cx_cli_holders *all)
{
  cx_cli_holder at = { .pid = (long)getpid() };
  char state;
  while (at.pid > 1 && read_stat(d, &at, &state)) {
    for (size_t i = 0; i < all->n; i++) {
      if (all->items[i].pid == at.pid) all->items[i].is_ours = true;
    }
    at.pid = at.parent;
  }
}

void cx_cli_holders_find(const cx_cli_doctor_state *d, cx_cli_holders *out)
{
  *out = (cx_cli_holders){ 0 };
  cx_cli_doctor_path at = cx_cli_doctor_at(d, "/proc");
  DIR *folder = opendir(at.s);
  if (folder == NULL) return;
  for (const struct dirent *e; !out->failed && (e = readdir(folder)) != NULL;) {
    char *end;
    long pid = strtol(e->d_name, &end, 10);
    if (*end == '\0' && pid > 0) look_at(d, pid, out);
  }
  closedir(folder);
  if (d->root[0] == '\0') mark_ours(d, out);
}

void cx_cli_holders_free(cx_cli_holders *h)
{
  for (size_t i = 0; i < h->n; i++) cx_text_free(&h->items[i].holds);
  cx_free(h->items);
  *h = (cx_cli_holders){ 0 };
}

bool cx_cli_holder_lives(const cx_cli_doctor_state *d, const cx_cli_holder *h)
{
  cx_cli_holder now = { .pid = h->pid };
  char state;
  return read_stat(d, &now, &state) && now.start == h->start && state != 'Z';
}
