// run/object: see object.h.
//
// The sections that take memory are laid out one after the other in one
// mapping. Behind them is a jump to each function of the C library that the
// code may call, because that may be farther away than the 2 GiB that a call
// reaches. The relocations are applied. Then the mapping becomes readable and
// executable; it is never writable and executable at the same time.
#include "run/object.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"

#define SECTION_LIMIT 4096
#define SYMBOL_LIMIT (1u << 20)
#define IMAGE_LIMIT ((size_t)1 << 30)

typedef struct elf_function {
  char *name;
  void *address;
} elf_function;

struct cpu_run_object {
  unsigned char *image;
  size_t image_size;
  elf_function *functions;  // the global ones
  size_t n_functions;
};

// The functions that an object may call.
static const struct outside {
  const char *name;
  void *(*set)(void *, int, size_t);
  void *(*copy)(void *, const void *, size_t);
} outside[] = {
  { "memset", memset, NULL },
  { "memcpy", NULL, memcpy },
  { "memmove", NULL, memmove },
};
#define N_OUTSIDE (sizeof outside / sizeof outside[0])
#define JUMP_SIZE 16

typedef struct elf_reader {
  const unsigned char *data;
  size_t size;
  const Elf64_Ehdr *header;
  const Elf64_Shdr *sections;
  size_t *offsets;  // of each section in the image; SIZE_MAX: not in it
  size_t jumps;     // where they start in the image
  const Elf64_Sym *symbols;
  size_t n_symbols;
  const char *names;
  size_t names_size;
  cpu_run_object *object;
} elf_reader;

static calx_status *damaged(const char *what)
{
  return cx_error(CALX_DATA_LOSS, "object code: %s", what);
}

static bool inside(const elf_reader *r, uint64_t offset, uint64_t size)
{
  return offset <= r->size && size <= r->size - offset;
}

static calx_status *read_header(elf_reader *r)
{
  if (r->size < sizeof(Elf64_Ehdr) || (uintptr_t)r->data % 8 != 0) {
    return damaged("it is too short, or not aligned");
  }
  r->header = (const Elf64_Ehdr *)(const void *)r->data;
  const Elf64_Ehdr *h = r->header;
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
      h->e_ident[EI_CLASS] != ELFCLASS64 ||
      h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL ||
      h->e_machine != EM_X86_64) {
    return damaged("it is no relocatable x86-64 ELF object");
  }
  if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum > SECTION_LIMIT ||
      h->e_shoff % 8 != 0 ||
      !inside(r, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr))) {
    return damaged("its section table lies outside of the file");
  }
  r->sections = (const Elf64_Shdr *)(const void *)(r->data + h->e_shoff);
  return NULL;
}

// Where each section goes, and how large the image is.
static calx_status *lay_out(elf_reader *r, size_t *out_size)
{
  size_t at = 0;
  for (size_t i = 0; i < r->header->e_shnum; i++) {
    const Elf64_Shdr *s = &r->sections[i];
    r->offsets[i] = SIZE_MAX;
    if (s->sh_type != SHT_NOBITS && !inside(r, s->sh_offset, s->sh_size)) {
      return damaged("a section lies outside of the file");
    }
    if ((s->sh_flags & SHF_ALLOC) == 0) continue;
    // The rest is for debuggers and unwinders. Nothing unwinds through loops.
    if (s->sh_type != SHT_PROGBITS && s->sh_type != SHT_NOBITS) continue;
    if ((s->sh_flags & SHF_WRITE) != 0 && s->sh_size > 0) {
      return damaged("it has a writable section");
    }
    size_t align = s->sh_addralign == 0 ? 1 : s->sh_addralign;
    if ((align & (align - 1)) != 0 || align > 4096) {
      return damaged("a section's alignment is not valid");
    }
    at = (at + align - 1) & ~(align - 1);
    r->offsets[i] = at;
    if (s->sh_size > IMAGE_LIMIT - at) return damaged("it is too large");
    at += s->sh_size;
  }
  at = (at + JUMP_SIZE - 1) & ~(size_t)(JUMP_SIZE - 1);
  r->jumps = at;
  at += N_OUTSIDE * JUMP_SIZE;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  *out_size = (at + page - 1) / page * page;
  return NULL;
}

// jmp *0(%rip), with the address behind it.
static void write_jumps(const elf_reader *r)
{
  for (size_t i = 0; i < N_OUTSIDE; i++) {
    unsigned char *jump = r->object->image + r->jumps + i * JUMP_SIZE;
    static const unsigned char code[6] = { 0xff, 0x25, 0, 0, 0, 0 };
    memcpy(jump, code, sizeof code);
    if (outside[i].set != NULL) {
      memcpy(jump + sizeof code, &outside[i].set, 8);
    } else {
      memcpy(jump + sizeof code, &outside[i].copy, 8);
    }
  }
}

static calx_status *read_symbols(elf_reader *r)
{
  for (size_t i = 0; i < r->header->e_shnum; i++) {
    const Elf64_Shdr *s = &r->sections[i];
    if (s->sh_type != SHT_SYMTAB) continue;
    if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_offset % 8 != 0 ||
        s->sh_size / sizeof(Elf64_Sym) > SYMBOL_LIMIT ||
        s->sh_link >= r->header->e_shnum) {
      return damaged("its symbol table is not valid");
    }
    const Elf64_Shdr *names = &r->sections[s->sh_link];
    if (names->sh_type != SHT_STRTAB || names->sh_size == 0 ||
        r->data[names->sh_offset + names->sh_size - 1] != 0) {
      return damaged("its string table is not valid");
    }
    r->symbols = (const Elf64_Sym *)(const void *)(r->data + s->sh_offset);
    r->n_symbols = s->sh_size / sizeof(Elf64_Sym);
    r->names = (const char *)(r->data + names->sh_offset);
    r->names_size = names->sh_size;
    return NULL;
  }
  return damaged("it has no symbol table");
}

static calx_status *symbol_offset(const elf_reader *r, uint64_t index,
                                  uint64_t *out)
{
  if (index >= r->n_symbols) return damaged("a symbol's index is out of range");
  const Elf64_Sym *s = &r->symbols[index];
  if (s->st_name >= r->names_size)
    return damaged("a symbol's name lies outside of the string table");
  if (s->st_shndx == SHN_UNDEF) {
    const char *name = r->names + s->st_name;
    for (size_t i = 0; i < N_OUTSIDE; i++) {
      if (strcmp(name, outside[i].name) == 0) {
        *out = r->jumps + i * JUMP_SIZE;
        return NULL;
      }
    }
    return cx_error(CALX_DATA_LOSS,
                    "object code: it calls '%.60s', which is not allowed",
                    name);
  }
  if (s->st_shndx >= r->header->e_shnum ||
      r->offsets[s->st_shndx] == SIZE_MAX ||
      s->st_value > r->sections[s->st_shndx].sh_size) {
    return damaged("a symbol lies outside of its section");
  }
  *out = r->offsets[s->st_shndx] + s->st_value;
  return NULL;
}

static calx_status *relocate_one(const elf_reader *r, size_t section,
                                 const Elf64_Rela *rela)
{
  size_t size = r->sections[section].sh_size;
  uint64_t type = ELF64_R_TYPE(rela->r_info);
  size_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
  if (rela->r_offset > size || size - rela->r_offset < width) {
    return damaged("a relocation lies outside of its section");
  }
  uint64_t target = 0;
  CALX_TRY(symbol_offset(r, ELF64_R_SYM(rela->r_info), &target));
  unsigned char *image = r->object->image;
  size_t at = r->offsets[section] + rela->r_offset;
  uint64_t value = target + (uint64_t)rela->r_addend;
  if (type == R_X86_64_64) {
    value += (uint64_t)(uintptr_t)image;
  } else if (type == R_X86_64_PC32 || type == R_X86_64_PLT32 ||
             type == R_X86_64_PC64) {
    value -= at;
  } else {
    return cx_error(CALX_DATA_LOSS, "object code: relocation of kind %d",
                    (int)type);
  }
  if (width == 4) {
    int64_t wide = (int64_t)value;
    if (wide != (int32_t)wide)
      return damaged("a relocation's target is out of reach");
  }
  memcpy(image + at, &value, width);
  return NULL;
}

static calx_status *relocate(const elf_reader *r)
{
  for (size_t i = 0; i < r->header->e_shnum; i++) {
    const Elf64_Shdr *s = &r->sections[i];
    if (s->sh_type != SHT_RELA) continue;
    if (s->sh_info >= r->header->e_shnum || s->sh_offset % 8 != 0 ||
        s->sh_entsize != sizeof(Elf64_Rela)) {
      return damaged("its relocation table is not valid");
    }
    if (r->offsets[s->sh_info] == SIZE_MAX) continue;  // of debug sections
    const Elf64_Rela *relas =
        (const Elf64_Rela *)(const void *)(r->data + s->sh_offset);
    for (size_t k = 0; k < s->sh_size / sizeof *relas; k++) {
      CALX_TRY(relocate_one(r, s->sh_info, &relas[k]));
    }
  }
  return NULL;
}

static int by_name(const void *a, const void *b)
{
  return strcmp(((const elf_function *)a)->name,
                ((const elf_function *)b)->name);
}

static calx_status *keep_functions(const elf_reader *r)
{
  cpu_run_object *o = r->object;
  o->functions = cx_calloc(r->n_symbols + 1, sizeof *o->functions);
  if (o->functions == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < r->n_symbols; i++) {
    const Elf64_Sym *s = &r->symbols[i];
    if (ELF64_ST_BIND(s->st_info) != STB_GLOBAL || s->st_shndx == SHN_UNDEF) {
      continue;
    }
    uint64_t offset = 0;
    CALX_TRY(symbol_offset(r, i, &offset));
    elf_function *kept = &o->functions[o->n_functions];
    kept->name = cx_strdup(r->names + s->st_name);
    if (kept->name == NULL) return cx_out_of_memory();
    kept->address = o->image + offset;
    o->n_functions++;
  }
  qsort(o->functions, o->n_functions, sizeof *o->functions, by_name);
  return NULL;
}

static calx_status *load(elf_reader *r)
{
  CALX_TRY(read_header(r));
  r->offsets = cx_calloc(r->header->e_shnum + 1u, sizeof *r->offsets);
  if (r->offsets == NULL) return cx_out_of_memory();
  size_t size = 0;
  CALX_TRY(lay_out(r, &size));
  CALX_TRY(read_symbols(r));
  void *image = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (image == MAP_FAILED) return cx_out_of_memory();
  r->object->image = image;
  r->object->image_size = size;
  for (size_t i = 0; i < r->header->e_shnum; i++) {
    const Elf64_Shdr *s = &r->sections[i];
    if (r->offsets[i] == SIZE_MAX || s->sh_type == SHT_NOBITS) continue;
    memcpy(r->object->image + r->offsets[i], r->data + s->sh_offset,
           s->sh_size);
  }
  write_jumps(r);
  CALX_TRY(relocate(r));
  CALX_TRY(keep_functions(r));
  if (mprotect(image, size, PROT_READ | PROT_EXEC) != 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "the system does not let memory become executable");
  }
  return NULL;
}

calx_status *cpu_run_object_load(const void *data, size_t size,
                                 cpu_run_object **out)
{
  *out = NULL;
  elf_reader r = { .data = data, .size = size };
  r.object = cx_calloc(1, sizeof *r.object);
  if (r.object == NULL) return cx_out_of_memory();
  calx_status *status = load(&r);
  cx_free(r.offsets);
  if (status != NULL) {
    cpu_run_object_free(r.object);
    return status;
  }
  *out = r.object;
  return NULL;
}

void cpu_run_object_free(cpu_run_object *object)
{
  if (object == NULL) return;
  if (object->image != NULL) munmap(object->image, object->image_size);
  for (size_t i = 0; i < object->n_functions; i++) {
    cx_free(object->functions[i].name);
  }
  cx_free(object->functions);
  cx_free(object);
}

void *cpu_run_object_find(const cpu_run_object *object, const char *symbol)
{
  const elf_function key = { .name = (char *)(uintptr_t)symbol };
  const elf_function *found =
      object->n_functions == 0
          ? NULL
          : bsearch(&key, object->functions, object->n_functions, sizeof key,
                    by_name);
  return found == NULL ? NULL : found->address;
}

size_t cpu_run_object_bytes(const cpu_run_object *object)
{
  return object->image_size;
}
