// optim/lbfgs_search: a line search for the strong Wolfe conditions, with the
// decisions of torch.optim.LBFGS, so that both evaluate at the same points
// (J. Nocedal and S. Wright, Numerical optimization, 2006, section 3.5).
#include <math.h>
#include <string.h>

#include "optim/lbfgs.h"

static const double armijo = 1e-4, curvature = 0.9, tolerance = 1e-9;

// Python's, which returns the first where one is NaN.
static double least(double x, double y)
{
  return y < x ? y : x;
}
static double most(double x, double y)
{
  return y > x ? y : x;
}

// Where the cubic through both points has its minimum, within bounds.
static double interpolate(const cx_optim_point *p, const cx_optim_point *q,
                          double low, double high)
{
  double d1 = p->slope + q->slope - 3 * (p->loss - q->loss) / (p->t - q->t);
  double square = d1 * d1 - p->slope * q->slope;
  if (!(square >= 0)) return (low + high) / 2;
  double d2 = sqrt(square), at;
  if (p->t <= q->t) {
    at = q->t - (q->t - p->t) *
                    ((q->slope + d2 - d1) / (q->slope - p->slope + 2 * d2));
  } else {
    at = p->t - (p->t - q->t) *
                    ((p->slope + d2 - d1) / (p->slope - q->slope + 2 * d2));
  }
  return least(most(at, low), high);
}

typedef struct line_search {
  cx_optim_lbfgs *l;
  const cx_optim_point *start;
  cx_optim_point now, bracket[2];
  int n;  // of the bracket
  int64_t iteration, most;
  bool done, stuck;
  size_t low, high;
} line_search;

static calx_status *evaluate(line_search *s, double t)
{
  s->now.t = t;
  CALX_TRY(cx_optim_lbfgs_at(s->l, t, &s->now.loss, s->now.grad));
  s->l->evals++;
  s->now.slope = cx_optim_dot(s->l->size, s->now.grad, s->l->s.d);
  return NULL;
}

// Copies a point; each has a gradient of its own.
static void put(const line_search *s, cx_optim_point *to,
                const cx_optim_point *from)
{
  double *grad = to->grad;
  *to = *from;
  to->grad = grad;
  if (grad != from->grad) {
    memcpy(grad, from->grad, s->l->size * sizeof *grad);
  }
}

static bool too_high(const line_search *s)
{
  return s->now.loss > s->start->loss + armijo * s->now.t * s->start->slope;
}

static bool flat(const line_search *s)
{
  return fabs(s->now.slope) <= -curvature * s->start->slope;
}

// bracket[0] has the point before.
static calx_status *find_bracket(line_search *s)
{
  cx_optim_point *before = &s->bracket[0];
  while (s->iteration < s->most) {
    bool rises = s->iteration > 1 && s->now.loss >= before->loss;
    s->n = 2;
    if (too_high(s) || rises) break;
    s->done = flat(s);
    if (s->done) s->n = 1;
    if (s->done || s->now.slope >= 0) break;
    double t =
        interpolate(before, &s->now, s->now.t + 0.01 * (s->now.t - before->t),
                    s->now.t * 10);
    put(s, before, &s->now);
    CALX_TRY(evaluate(s, t));
    s->iteration++;
  }
  if (s->iteration == s->most) {
    s->n = 2;
    double slope = before->slope;
    put(s, before, s->start);
    before->t = 0;
    before->slope = slope;
  }
  put(s, &s->bracket[s->n - 1], &s->now);
  return NULL;
}

// A trial step that is away from the bracket's ends.
static double trial(line_search *s)
{
  const cx_optim_point *p = &s->bracket[0], *q = &s->bracket[1];
  double low = least(p->t, q->t), high = most(p->t, q->t);
  double t = interpolate(p, q, low, high), part = 0.1 * (high - low);
  bool close = least(high - t, t - low) < part;
  bool moves = close && (s->stuck || t >= high || t <= low);
  s->stuck = close && !moves;
  if (!moves) return t;
  return fabs(t - high) < fabs(t - low) ? high - part : low + part;
}

static void narrow(line_search *s)
{
  cx_optim_point *b = s->bracket;
  if (too_high(s) || s->now.loss >= b[s->low].loss) {
    put(s, &b[s->high], &s->now);
    s->low = b[0].loss <= b[1].loss ? 0 : 1;
    s->high = 1 - s->low;
    return;
  }
  s->done = flat(s);
  if (!s->done && s->now.slope * (b[s->high].t - b[s->low].t) >= 0) {
    put(s, &b[s->high], &b[s->low]);
  }
  put(s, &b[s->low], &s->now);
}

static calx_status *zoom(line_search *s)
{
  double norm = cx_optim_greatest(s->l->size, s->l->s.d);
  s->low = s->n == 1 || s->bracket[0].loss <= s->bracket[1].loss ? 0 : 1;
  s->high = 1 - s->low;
  while (!s->done && s->iteration < s->most) {
    if (fabs(s->bracket[1].t - s->bracket[0].t) * norm < tolerance) break;
    CALX_TRY(evaluate(s, trial(s)));
    s->iteration++;
    narrow(s);
  }
  return NULL;
}

calx_status *cx_optim_strong_wolfe(cx_optim_lbfgs *l, cx_optim_point *at,
                                   int64_t most_steps)
{
  cx_optim_point start = *at;
  line_search s = { .l = l, .start = &start, .most = most_steps };
  s.now.grad = l->search[0];
  s.bracket[0].grad = l->search[1];
  s.bracket[1].grad = l->search[2];
  start.grad = l->search[3];
  memcpy(start.grad, at->grad, l->size * sizeof *at->grad);
  start.t = 0;
  put(&s, &s.bracket[0], &start);
  CALX_TRY(evaluate(&s, at->t));
  CALX_TRY(find_bracket(&s));
  CALX_TRY(zoom(&s));
  put(&s, at, &s.bracket[s.low]);
  return NULL;
}
