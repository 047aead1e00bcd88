// api/identity: which build of the engine this is.
//
// An executable on disk is valid only for the build of the engine that made it.
// A version number would have to be raised with each change, so the identity is
// the linker's build id, a hash of the engine's file which is in memory.
// Without a build id, the file itself is hashed. The compiler of loops (the
// jit) is a separate file, whose hash is added.
#include <elf.h>
#include <link.h>
#include <string.h>

#include "abi/calx_cpu.h"
#include "api/api.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "kernel/choices.h"
#include "lower/compile.h"

typedef struct search {
  uintptr_t address;  // in the file that is searched for
  const char *path;   // of the loaded file; valid while it is loaded
  bool found;         // whether it has a build id
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

static int visit_file(struct dl_phdr_info *info, size_t size, void *user)
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
  static const char here;
  search s = { .address = (uintptr_t)&here, .path = "" };
  (void)dl_iterate_phdr(visit_file, &s);
  return s;
}

// The path is empty if the engine is linked into the program itself.
const char *calx_cpu_path(void)
{
  search s = find_self();
  return strchr(s.path, '/') != NULL ? s.path : "/proc/self/exe";
}

// Adds the hash of the jit's file that would be loaded.
static calx_status *add_jit(cx_hash *hash)
{
  cx_text path = { 0 };
  cx_hash jit = { 0 };
  bool found = false;
  for (size_t i = 0;
       !found && !cx_text_failed(&path) && cpu_lower_jit_path(i, &path); i++) {
    found = cx_file_exists(cx_text_str(&path)) &&
            strchr(cx_text_str(&path), '/') != NULL;
  }
  calx_status *status = cx_text_failed(&path) ? cx_out_of_memory() : NULL;
  if (status == NULL && found) status = cx_hash_file(cx_text_str(&path), &jit);
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

// ---- choices ----------------------------------------------------------------

// Behind them stands the build's identity: another one has other kernels.
enum { IDENTITY = 2 };

calx_status *calx_cpu_choices_save(int64_t **out, size_t *out_count)
{
  cx_hash build;
  CALX_TRY(calx_cpu_identity(&build));
  int64_t *choices;
  size_t count;
  CALX_TRY(cpu_kernel_choices_save(&choices, &count));
  *out = cx_calloc(count + IDENTITY, sizeof **out);
  if (*out == NULL) {
    cx_free(choices);
    return cx_out_of_memory();
  }
  memcpy(*out, choices, count * sizeof **out);
  (*out)[count] = (int64_t)build.low;
  (*out)[count + 1] = (int64_t)build.high;
  *out_count = count + IDENTITY;
  cx_free(choices);
  return NULL;
}

calx_status *calx_cpu_choices_load(const int64_t *numbers, size_t count)
{
  cx_hash build;
  CALX_TRY(calx_cpu_identity(&build));
  if (count < IDENTITY) {
    return cx_invalid("%zu numbers are no choices of kernels", count);
  }
  const int64_t *identity = numbers + count - IDENTITY;
  if (identity[0] != (int64_t)build.low || identity[1] != (int64_t)build.high) {
    return NULL;
  }
  return cpu_kernel_choices_load(numbers, count - IDENTITY);
}
