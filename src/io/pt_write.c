// io/pt_write: the pickle first, then one storage after the other.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/fetch.h"
#include "io/pickle.h"
#include "io/pt.h"
#include "io/zip.h"

// "model" of "/tmp/model.pt".
static char *prefix_of(const char *path)
{
  const char *base = strrchr(path, '/');
  base = base != NULL ? base + 1 : path;
  const char *dot = strrchr(base, '.');
  size_t n = dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base);
  return cx_strndup(base, n);
}

static calx_status *add_text(cx_io_zip *zip, const char *name, const char *text)
{
  return cx_io_zip_add(zip, name, text, strlen(text));
}

static calx_status *add_tensor(cx_io_zip *zip, size_t index, calx_tensor *t)
{
  char name[32];
  snprintf(name, sizeof name, "data/%zu", index);
  cx_io_elements e;
  CALX_TRY(cx_io_fetch(t, &e));
  calx_status *status = cx_io_zip_add(zip, name, e.data, e.bytes);
  cx_io_fetched(&e);
  return status;
}

static calx_status *add_all(cx_io_zip *zip, const cx_io_pickling *p)
{
  CALX_TRY(cx_io_zip_add(zip, "data.pkl", p->out.data, p->out.size));
  CALX_TRY(add_text(zip, ".format_version", "1"));
  CALX_TRY(add_text(zip, ".storage_alignment", "64"));
  CALX_TRY(add_text(zip, "byteorder", "little"));
  for (size_t i = 0; i < p->n; i++) {
    CALX_TRY(add_tensor(zip, i, p->tensors[i]));
  }
  CALX_TRY(add_text(zip, "version", "3\n"));
  char id[41];  // equal for equal contents
  snprintf(id, sizeof id, "%020" PRIu32 "%020" PRIu32, zip->names, zip->checks);
  return add_text(zip, ".data/serialization_id", id);
}

calx_status *cx_io_pt_write(cx_writer *w, const char *path,
                            const calx_value *value)
{
  cx_io_pickling p;
  calx_status *status = cx_io_pickle(value, &p);
  char *prefix = prefix_of(path);
  cx_io_zip zip = { .w = w, .prefix = prefix };
  if (status == NULL && prefix == NULL) status = cx_out_of_memory();
  if (status == NULL) status = add_all(&zip, &p);
  status = cx_io_zip_end(&zip, status);
  cx_io_pickled(&p);
  cx_free(prefix);
  return status;
}
