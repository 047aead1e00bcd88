// ops/recurrent: one recurrent layer in one direction, as one loop.
//
// Sizes: T steps, N batch, H hidden, P output (H, or the projection's), G the
// gates' columns (H, 4 H or 3 H).
#ifndef CX_OPS_RECURRENT_H
#define CX_OPS_RECURRENT_H

#include "ops/ops.h"

typedef enum cx_ops_cell {
  CX_OPS_CELL_TANH,
  CX_OPS_CELL_RELU,
  CX_OPS_CELL_LSTM,
  CX_OPS_CELL_GRU
} cx_ops_cell;

typedef struct cx_ops_recurrent_attrs {
  uint32_t cell;
  uint32_t reverse;    // from the last step to the first
  uint32_t save;       // the forward loop keeps what the backward loop needs
  uint32_t projected;  // an LSTM's output is projected
  uint32_t masked;     // rows have lengths: see cx_ops_recurrent_call
} cx_ops_recurrent_attrs;

// Columns of the gates for each hidden unit, and of what the loop saves; 0: the
// output is enough.
static inline int64_t cx_ops_cell_gates(uint32_t cell)
{
  return cell == CX_OPS_CELL_LSTM ? 4 : cell == CX_OPS_CELL_GRU ? 3 : 1;
}

static inline int64_t cx_ops_cell_saved(uint32_t cell)
{
  return cell == CX_OPS_CELL_LSTM ? 5 : cell == CX_OPS_CELL_GRU ? 4 : 0;
}

typedef struct cx_ops_recurrent_call {
  cx_ops_cell cell;
  bool reverse;
  calx_tensor *gates;      // (T, N, G): x W_ih^T with the biases
  calx_tensor *h0, *c0;    // (N, P), (N, H); c0 of an LSTM only
  calx_tensor *weight_hh;  // (G, P)
  calx_tensor *bias_hh;    // (G), of a GRU only
  calx_tensor *weight_hr;  // (P, H), or NULL
  // (N), whole numbers, or NULL: a row's steps from its length on change none
  // of its states; the outputs there are the state as it is.
  calx_tensor *lengths;
} cx_ops_recurrent_call;

// The outputs (T, N, P). *out_c: an LSTM's last cell state (N, H).
calx_tensor *cx_ops_recur(const cx_ops_recurrent_call *r, calx_tensor **out_c);

// (T, N, 1): whether a step is before the row's length.
calx_tensor *cx_ops_before_lengths(calx_tensor *lengths, int64_t steps);

// ---- emission ---------------------------------------------------------------

// The variables of both loops; those that a cell lacks are NULL.
enum {
  CX_OPS_VAR_STEP,     // (): steps done
  CX_OPS_VAR_H,        // (N, P): the state, or its gradient
  CX_OPS_VAR_C,        // (N, H)
  CX_OPS_VAR_OUT,      // (T, N, P): y; backward (T, N, G): of the gates
  CX_OPS_VAR_SAVED,    // (T, N, S)
  CX_OPS_VAR_EXTRA,    // backward: (T, N, E), see cx_ops_step_backward
  CX_OPS_VAR_IN,       // (T, N, G): gates; backward (T, N, P): dy
  CX_OPS_VAR_BEFORE,   // backward: (T, N, H): c or h before each step
  CX_OPS_VAR_WEIGHT,   // (G, P)
  CX_OPS_VAR_BIAS,     // (G)
  CX_OPS_VAR_PROJECT,  // (P, H)
  CX_OPS_VAR_LENGTHS,  // (N), of the index type
  CX_OPS_VARS
};

typedef struct cx_ops_loop {
  cx_hlo_builder *b;
  const cx_ops_recurrent_attrs *attrs;
  int64_t steps, batch, hidden;
  bool down;  // step 0 is at time T - 1
  cx_hlo_elem elem, wide, index;
  cx_hlo_value *at;              // the step's time
  cx_hlo_value *v[CX_OPS_VARS];  // in the body: the variables
  void (*step)(struct cx_ops_loop *l);
} cx_ops_loop;

// Emits the loop over l->v, which has the results after it.
void cx_ops_emit_loop(cx_ops_loop *l);
// (N, …) of a step of a sequence (T, N, …), in the wide type.
cx_hlo_value *cx_ops_loop_read(cx_ops_loop *l, int var);
void cx_ops_loop_write(cx_ops_loop *l, int var, cx_hlo_value *row);

// The body of the forward loop.
void cx_ops_step_forward(cx_ops_loop *l);
// The body of the backward loop. EXTRA has of a GRU the gradient of h W_hn^T +
// b_hn (E = H), of a projected LSTM the gradient of the output (E = P).
void cx_ops_step_backward(cx_ops_loop *l);

#endif
