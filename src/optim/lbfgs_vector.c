// optim/lbfgs_vector: vectors of LBFGS, and the history that is made of them.
#include <math.h>

#include "base/alloc.h"
#include "optim/lbfgs.h"

double cx_optim_dot(size_t n, const double *x, const double *y)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

double cx_optim_greatest(size_t n, const double *x)
{
  double most = 0;
  for (size_t i = 0; i < n; i++) {
    double a = fabs(x[i]);
    if (!(a <= most)) most = a;
  }
  return most;
}

void cx_optim_lbfgs_state_free(cx_optim_lbfgs_state *s)
{
  for (size_t i = 0; i < s->n_old; i++) {
    cx_free(s->old_dirs[i]);
    cx_free(s->old_stps[i]);
  }
  cx_free(s->old_dirs);
  cx_free(s->old_stps);
  cx_free(s->ro);
  cx_free(s->d);
  cx_free(s->prev_flat_grad);
  *s = (cx_optim_lbfgs_state){ 0 };
}

bool cx_optim_lbfgs_grow(cx_optim_lbfgs_state *s, size_t size)
{
  size_t room = s->capacity, again = s->capacity, third = s->capacity;
  size_t n = s->n_old + 1;
  if (!cx_grow(&s->old_dirs, &room, n, sizeof *s->old_dirs) ||
      !cx_grow(&s->old_stps, &again, n, sizeof *s->old_stps) ||
      !cx_grow(&s->ro, &third, n, sizeof *s->ro)) {
    return false;
  }
  s->capacity = room;
  double *y = cx_calloc(size, sizeof *y), *p = cx_calloc(size, sizeof *p);
  if (y == NULL || p == NULL) {
    cx_free(y);
    cx_free(p);
    return false;
  }
  s->old_dirs[s->n_old] = y;
  s->old_stps[s->n_old++] = p;
  return true;
}
