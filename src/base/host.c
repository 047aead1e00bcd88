// base/host: see host.h.
#include "base/host.h"

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

cx_hash cx_host_identity(void)
{
  char text[512] = "", name[256] = "", boot[64] = "";
  gethostname(name, sizeof name - 1);
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (file != NULL && fgets(boot, sizeof boot, file) == NULL) boot[0] = '\0';
  if (file != NULL) fclose(file);
  ssize_t n = readlink("/proc/self/ns/pid", text, 128);
  size_t used = n > 0 ? (size_t)n : 0;
  used +=
      (size_t)snprintf(text + used, sizeof text - used, " %s %s", name, boot);
  return cx_hash_bytes(text, used, 0);
}
