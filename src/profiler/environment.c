// profiler/environment: what the environment's variables say.
#include <stdlib.h>

#include "base/file.h"
#include "base/text.h"
#include "profiler/internal.h"

const char *cx_profiler_env(const char *name, const char *other_name)
{
  const char *text = getenv(name);
  if (text != NULL && *text != '\0') return text;
  text = other_name != NULL ? getenv(other_name) : NULL;
  return text != NULL && *text != '\0' ? text : NULL;
}

char *cx_profiler_path_of_rank(const char *path)
{
  cx_trace_ranks here = cx_trace_ranks_here();
  cx_text out = { 0 };
  cx_text_append(&out, path);
  if (here.size > 1 && !cx_file_is_stream(path))
    cx_text_format(&out, ".%d", here.first);
  return cx_text_take(&out);
}
