// tools/portable/arc4random: LLVM's call of a function that only glibc 2.36 has,
// for a portable build. Its numbers name temporary files.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void);
uint32_t arc4random(void)
{
  uint32_t v = 0;
  if (getrandom(&v, sizeof v, 0) != (ssize_t)sizeof v) abort();
  return v;
}
