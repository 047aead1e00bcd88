// save_once FILE: saves one value, for trace.sh to see how.
#include "calx/io.h"

int main(int argc, char **argv)
{
  static const float data[1 << 18];
  if (argc != 2) return 2;
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  calx_scope *s = calx_scope_begin();
  calx_tensor *t = calx_host_tensor(data, CALX_F32, CALX_SHAPE(1 << 18));
  calx_status *status = calx_value_set(d, "w", calx_value_tensor(t));
  if (status == NULL) status = calx_scope_end(s);
  if (status == NULL) status = calx_save(d, argv[1]);
  calx_value_free(d);
  return status == NULL ? 0 : 1;
}
