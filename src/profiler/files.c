// profiler/files: the files that the environment names.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "profiler/internal.h"

void cx_profiler_append(const char *variable, const char *path,
                        const char *text)
{
  FILE *file = fopen(path, "a");
  bool ok = file != NULL && fputs(text, file) >= 0;
  if (file != NULL && fclose(file) != 0) ok = false;
  if (!ok) {
    cx_log_once_per_site(variable, "%s: cannot write '%s': %s", variable, path,
                         strerror(errno));
  }
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
