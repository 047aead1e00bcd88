// api/identity: which build of the engine this is.
//
// Executables that are kept on disk are good for the engine that made them, and
// nobody raises a version for each change. The linker's note of what it linked
// (the build id) is the engine's file in twenty bytes, already in memory; where
// there is none the file itself is read. The compiler of loops is a file of its
// own and counts too.
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "abi/calx_cpu.h"
#include "api/api.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

#define JIT_FILE "libcalx_jit.so"

typedef struct search {
  uintptr_t address;  // in the file that is meant
  const char *path;   // as it was loaded; lives as long as the file is
  bool found;         // a build id
  cx_hash hash;
} search;

static void read_notes(const char *note, size_t size, search *s)
{
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    memcpy(&head, note, sizeof head);
    size_t name = ((size_t)head.n_namesz + 3) & ~(size_t)3;
    size_t text = ((size_t)head.n_descsz + 3) & ~(size_t)3;
    size_t rest = size - sizeof head;
    if (name > rest || text > rest - name) return;
    const char *at = note + sizeof head;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
        memcmp(at, "GNU", 4) == 0) {
      s->hash = cx_hash_bytes(at + name, head.n_descsz, 0);
      s->found = true;
      return;
    }
    note = at + name + text;
    size = rest - name - text;
  }
}

static int look(struct dl_phdr_info *info, size_t size, void *user)
{
  (void)size;
  search *s = user;
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + p->p_vaddr;
    here = here || (p->p_type == PT_LOAD && s->address >= start &&
                    s->address - start < p->p_memsz);
  }
  if (here) s->path = info->dlpi_name;
  for (int i = 0; here && !s->found && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type == PT_NOTE) {
      read_notes((const char *)(info->dlpi_addr + p->p_vaddr), p->p_memsz, s);
    }
  }
  return here;
}

static search find_self(void)
{
  search s = { .address = (uintptr_t)calx_cpu_api(), .path = "" };
  (void)dl_iterate_phdr(look, &s);
  return s;
}

// A program itself has no name there.
const char *calx_cpu_path(void)
{
  search s = find_self();
  return strchr(s.path, '/') != NULL ? s.path : "/proc/self/exe";
}

static calx_status *add_jit(cx_hash *hash)
{
  const char *asked = getenv("CALX_JIT");
  char self[PATH_MAX];
  if (realpath(calx_cpu_path(), self) == NULL) strcpy(self, "/");
  cx_text path = { 0 };
  cx_hash jit = { 0 };
  if (asked != NULL && asked[0] != '\0') {
    cx_text_append(&path, asked);
  } else {
    cx_text_append_n(&path, self, (size_t)(strrchr(self, '/') - self) + 1);
    cx_text_append(&path, JIT_FILE);
    if (!cx_file_exists(cx_text_str(&path))) {
      cx_text_clear(&path);
      cx_text_append(&path, CALX_JIT_FOLDER "/" JIT_FILE);
    }
  }
  calx_status *status = cx_text_failed(&path) ? cx_out_of_memory() : NULL;
  if (status == NULL && cx_file_exists(cx_text_str(&path))) {
    status = cx_hash_file(cx_text_str(&path), &jit);
  }
  cx_text_free(&path);
  hash->low ^= jit.high;
  hash->high ^= jit.low;
  return status;
}

calx_status *calx_cpu_identity(cx_hash *out)
{
  search s = find_self();
  if (!s.found) CALX_TRY(cx_hash_file(calx_cpu_path(), &s.hash));
  *out = s.hash;
  return add_jit(out);
}
