// A CSV file of drawn houses.
#ifndef EXAMPLES_HOUSES_H
#define EXAMPLES_HOUSES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drawn.h"

// Writes it to a new file in the folder for temporary files, whose path it
// returns; NULL: not possible. The caller unlinks the file and frees the path.
static inline char *houses_draw(int rows, uint64_t seed)
{
  const char *folder = getenv("TMPDIR");
  if (folder == NULL) folder = "/tmp";
  size_t size = strlen(folder) + sizeof "/houses.XXXXXX";
  char *path = malloc(size);
  if (path == NULL) return NULL;
  snprintf(path, size, "%s/houses.XXXXXX", folder);
  int descriptor = mkstemp(path);
  FILE *f = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
  if (f == NULL) return free(path), NULL;
  fputs("area,rooms,age,distance,price\n", f);
  for (int i = 0; i < rows; i++) {
    double area = 30 + 170 * drawn(&seed), rooms = 1 + floor(6 * drawn(&seed));
    double age = 80 * drawn(&seed), distance = 30 * drawn(&seed);
    double price = area * (1.5 + 2 * exp(-distance / 8) - age / 200);
    price += 10 * rooms + 10 * drawn_normal(&seed);
    fprintf(f, "%.1f,%.0f,%.0f,%.2f,%.2f\n", area, rooms, age, distance, price);
  }
  fclose(f);
  return path;
}

#endif
