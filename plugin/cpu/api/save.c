// api/save: executables as bytes.
//
//   8 bytes  "CALXCPU\n"      4  version of this layout
//   4 bytes  size of options  8  size of the program
//   8        size of the shardings
//   16       hash of the engine's version and of all that follows
//   then the compile options, the program's own bytes and the shardings.
//
// The hash detects truncated and damaged files, and those of other builds. It
// is no protection against files that somebody made to do harm.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "base/hash.h"

#define MAGIC "CALXCPU\n"
#define VERSION 4u

typedef struct header {
  char magic[8];
  uint32_t version;
  uint32_t options_size;
  uint64_t program_size;
  uint64_t shardings_size;
  cx_hash hash;
} header;
_Static_assert(sizeof(header) == 48, "no padding");

static cx_hash hash_of(const char *body, size_t size)
{
  static const char version[] = CALX_VERSION;
  cx_hash build = cx_hash_bytes(version, sizeof version, VERSION);
  return cx_hash_bytes(body, size, build.low);
}

calx_status *cpu_api_executable_save(const cpu_api_code *code, cx_text *out)
{
  cx_text program = { 0 };
  calx_status *status = cpu_run_program_save(code->program, &program);
  if (status != NULL) {
    cx_text_free(&program);
    return status;
  }
  header h = { .version = VERSION,
               .options_size = (uint32_t)code->options_size,
               .program_size = program.size,
               .shardings_size = code->shardings.size };
  memcpy(h.magic, MAGIC, sizeof h.magic);
  cx_text_append_n(out, (const char *)&h, sizeof h);
  cx_text_append_n(out, code->options, code->options_size);
  cx_text_append_n(out, program.data, program.size);
  cx_text_append_n(out, code->shardings.data, code->shardings.size);
  bool failed = cx_text_failed(&program) || cx_text_failed(out);
  cx_text_free(&program);
  if (failed) return cx_out_of_memory();
  h.hash = hash_of(out->data + sizeof h, out->size - sizeof h);
  memcpy(out->data, &h, sizeof h);
  return NULL;
}

calx_status *cpu_api_executable_read(const char *bytes, size_t size,
                                     cpu_threads *threads, cpu_api_code **out)
{
  header h = { .version = 0 };
  *out = NULL;
  if (bytes != NULL && size >= sizeof h) memcpy(&h, bytes, sizeof h);
  if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0) {
    return cx_invalid("%zu bytes that are no executable of calx_cpu", size);
  }
  if (h.version != VERSION) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "an executable of layout %u, this engine reads %u",
                    h.version, VERSION);
  }
  size_t rest = size - sizeof h;
  if (h.options_size > rest || h.program_size > rest - h.options_size ||
      h.shardings_size != rest - h.options_size - h.program_size) {
    return cx_error(CALX_DATA_LOSS,
                    "an executable of %zu bytes that should have more or less",
                    size);
  }
  const char *body = bytes + sizeof h;
  if (!cx_hash_equal(h.hash, hash_of(body, rest))) {
    return cx_error(CALX_DATA_LOSS,
                    "an executable that was damaged, or made by another "
                    "version than " CALX_VERSION);
  }
  cpu_run_program *program = NULL;
  CALX_TRY(cpu_run_program_load(body + h.options_size, (size_t)h.program_size,
                                threads, &program));
  cx_text shardings = { 0 };
  cx_text_append_n(&shardings, body + h.options_size + h.program_size,
                   (size_t)h.shardings_size);
  calx_status *status =
      cpu_api_code_new(program, NULL, body, h.options_size, &shardings, out);
  cx_text_free(&shardings);
  return status;
}
