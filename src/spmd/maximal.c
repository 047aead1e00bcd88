// spmd/maximal: custom calls that one device runs, as JAX's callbacks into the
// host.
//
// Their sharding names a mesh without axes that has one device,
//   sdy.mesh @one = <[], device_ids=[2]>
// or it is GSPMD's text "{maximal device=2}". All devices have the operands
// whole. Each takes a branch by its number, and the one device sends the others
// the results:
//   %r = if (partition_id == 2) { custom_call(…) } else { zeros }
//   collective_broadcast(%r) from 2
// A call without results gives a flag: a device that has it knows that the call
// is over.
#include <inttypes.h>

#include "hlo/scan.h"
#include "spmd/internal.h"

// ---- which device ----

// '<' '[' ']' ',' 'device_ids' '=' '[' integer ']'; another mesh: -1
static calx_status *read_device(cx_hlo_scan *s, int64_t *out)
{
  *out = -1;
  CALX_TRY(cx_hlo_scan_need(s, "<"));
  CALX_TRY(cx_hlo_scan_need(s, "["));
  if (!cx_hlo_scan_accept(s, "]") || !cx_hlo_scan_accept(s, ",") ||
      !cx_hlo_scan_accept_word(s, "device_ids")) {
    return NULL;
  }
  CALX_TRY(cx_hlo_scan_need(s, "="));
  CALX_TRY(cx_hlo_scan_need(s, "["));
  CALX_TRY(cx_hlo_scan_int(s, out));
  return cx_hlo_scan_need(s, "]");
}

static cx_hlo_scan scan_of(cx_hlo_str text)
{
  return (cx_hlo_scan){ text.s, text.s, text.s + text.n, "sdy attribute",
                        false };
}

static calx_status *read_named(const cx_hlo_module *m, cx_hlo_str name,
                               int64_t *out)
{
  for (const cx_hlo_op *op = m->others.first; op != NULL; op = op->next) {
    const cx_hlo_attr *known =
        cx_hlo_named_attr(op->extra, op->n_extra, "sym_name");
    const cx_hlo_attr *mesh = cx_hlo_named_attr(op->extra, op->n_extra, "mesh");
    if (known == NULL || mesh == NULL || known->kind != CX_HLO_ATTR_STRING ||
        mesh->kind != CX_HLO_ATTR_TEXT ||
        !cx_hlo_str_same(known->as.text, name)) {
      continue;
    }
    cx_hlo_scan s = scan_of(mesh->as.text);
    CALX_TRY(cx_hlo_scan_need(&s, "#sdy.mesh"));
    return read_device(&s, out);
  }
  return cx_invalid("sdy: the program has no mesh '%.*s'", (int)name.n, name.s);
}

// #sdy.sharding_per_value<[<('@' name | 'mesh' mesh), …: the first one's
static calx_status *read_shardy(const cx_hlo_module *m, cx_hlo_str text,
                                int64_t *out)
{
  cx_hlo_scan s = scan_of(text);
  cx_hlo_str name;
  CALX_TRY(cx_hlo_scan_need(&s, "#sdy.sharding_per_value"));
  CALX_TRY(cx_hlo_scan_need(&s, "<"));
  CALX_TRY(cx_hlo_scan_need(&s, "["));
  if (!cx_hlo_scan_accept(&s, "<")) return NULL;
  if (cx_hlo_scan_accept_word(&s, "mesh")) return read_device(&s, out);
  CALX_TRY(cx_hlo_scan_need(&s, "@"));
  if (cx_hlo_scan_peek(&s) != '"') {
    return read_named(m, cx_hlo_scan_suffix(&s), out);
  }
  CALX_TRY(cx_hlo_scan_quoted(&s, &name));
  return read_named(m, (cx_hlo_str){ name.s + 1, name.n - 2 }, out);
}

static calx_status *read_gspmd(cx_hlo_str text, int64_t *out)
{
  cx_hlo_scan s = scan_of(text);
  const bool maximal = cx_hlo_scan_accept(&s, "{") &&
                       cx_hlo_scan_accept_word(&s, "maximal") &&
                       cx_hlo_scan_accept_word(&s, "device");
  if (!maximal) return NULL;
  CALX_TRY(cx_hlo_scan_need(&s, "="));
  return cx_hlo_scan_int(&s, out);
}

calx_status *cx_spmd_find_device(const cx_spmd_state *s, const cx_hlo_op *op,
                                 int64_t *out)
{
  *out = -1;
  if (op->kind != CX_HLO_OP_CUSTOM_CALL || s->n_partitions == 1) return NULL;
  const cx_hlo_attr *shardy =
      cx_hlo_named_attr(op->extra, op->n_extra, "sdy.sharding");
  const cx_hlo_attr *gspmd =
      cx_hlo_named_attr(op->extra, op->n_extra, "mhlo.sharding");
  if (shardy != NULL && shardy->kind == CX_HLO_ATTR_TEXT) {
    CALX_TRY(read_shardy(s->b.module, shardy->as.text, out));
  } else if (gspmd != NULL && gspmd->kind == CX_HLO_ATTR_STRING) {
    CALX_TRY(read_gspmd(gspmd->as.text, out));
  }
  if (*out >= -1 && *out < (int64_t)s->n_partitions) return NULL;
  return cx_invalid("a custom call for device %" PRId64
                    " in a program of %u partitions",
                    *out, s->n_partitions);
}

// ---- the branches ----

typedef struct single_call {
  cx_spmd_state *s;
  const cx_hlo_op *op;
  cx_hlo_value **operands;
  const cx_spmd_sharding *results;  // whole
  bool flag;                        // one more result, an i1
} single_call;

static const cx_hlo_type flag_type = { CX_HLO_I1, 0, NULL };

static void make_call(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                      cx_hlo_value **out)
{
  const single_call *c = user;
  (void)args;
  cx_hlo_op *to = cx_spmd_run(c->s, c->op, c->operands, c->results);
  for (uint32_t i = 0; i < c->op->n_results && to != NULL; i++) {
    out[i] = &to->results[i];
  }
  if (c->flag) out[c->op->n_results] = cx_hlo_splat_int(b, flag_type, 1);
}

static void make_zeros(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                       cx_hlo_value **out)
{
  const single_call *c = user;
  (void)args;
  for (uint32_t i = 0; i < c->op->n_results; i++) {
    const cx_hlo_type t = c->op->results[i].type.tensor;
    out[i] =
        t.elem == CX_HLO_TOKEN
            ? cx_hlo_build_end(b, cx_hlo_build_begin(b, CX_HLO_OP_CREATE_TOKEN,
                                                     NULL, 0, 1, 0))
            : cx_hlo_splat(b, t, 0);
  }
  if (c->flag) out[c->op->n_results] = cx_hlo_splat_int(b, flag_type, 0);
}

static cx_hlo_op *make_branches(cx_spmd_state *s, single_call *c,
                                int64_t device)
{
  static const cx_hlo_type number = { CX_HLO_UI32, 0, NULL };
  const size_t n = c->op->n_results + (c->flag ? 1u : 0u);
  cx_hlo_value *id = cx_hlo_build_end(
      &s->b, cx_hlo_build_begin(&s->b, CX_HLO_OP_PARTITION_ID, NULL, 0, 1, 0));
  cx_hlo_value *is_it = cx_hlo_compare(&s->b, CX_HLO_EQ, id,
                                       cx_hlo_splat_int(&s->b, number, device));
  cx_hlo_op *op = cx_hlo_build_begin(&s->b, CX_HLO_OP_IF, &is_it, 1, n, 2);
  cx_hlo_build_body(&s->b, op, 0, NULL, 0, n, make_call, c);
  cx_hlo_build_body(&s->b, op, 1, NULL, 0, n, make_zeros, c);
  cx_hlo_build_end(&s->b, op);
  return s->b.failed != NULL ? NULL : op;
}

// ---- the whole ----

static bool is_token(const cx_hlo_value *v)
{
  return v->type.non_tensor == NULL && v->type.tensor.elem == CX_HLO_TOKEN;
}

static calx_status *take_operands(cx_spmd_state *s, single_call *c,
                                  cx_spmd_sharding *whole)
{
  const cx_hlo_op *op = c->op;
  for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
    const cx_hlo_value *v =
        i < op->n_operands ? op->operands[i] : &op->results[i - op->n_operands];
    if (v->type.non_tensor != NULL) {
      return cx_error(CALX_UNIMPLEMENTED,
                      "a custom call for one device of %u, with an operand or "
                      "a result that is no tensor",
                      s->n_partitions);
    }
    if (!cx_spmd_sharding_new(&s->arena, v->type.tensor.rank, false,
                              &whole[i])) {
      return cx_out_of_memory();
    }
    if (i < op->n_operands) {
      c->operands[i] = cx_spmd_reshard(s, s->local[v->number],
                                       &s->want[v->number], &whole[i]);
    } else if (!is_token(v)) {
      c->flag = false;
    }
  }
  return NULL;
}

calx_status *cx_spmd_on_one_device(cx_spmd_state *s, const cx_hlo_op *op,
                                   int64_t device)
{
  const size_t n = cx_hlo_op_n_types(op);
  single_call c = { .s = s, .op = op, .flag = true };
  cx_spmd_sharding *whole = CX_ARENA_ARRAY(&s->arena, cx_spmd_sharding, n + 1);
  c.operands = CX_ARENA_ARRAY(&s->arena, cx_hlo_value *, n + 1);
  if (whole == NULL || c.operands == NULL) return cx_out_of_memory();
  CALX_TRY(take_operands(s, &c, whole));
  c.results = whole + op->n_operands;
  const cx_hlo_op *made = make_branches(s, &c, device);
  if (made == NULL) return NULL;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const uint32_t number = op->results[i].number;
    cx_hlo_value *v = &made->results[i];
    if (!is_token(v)) v = cx_spmd_broadcast(s, v, device);
    s->local[number] = cx_spmd_reshard(s, v, &c.results[i], &s->want[number]);
  }
  if (c.flag) (void)cx_spmd_broadcast(s, &made->results[op->n_results], device);
  return NULL;
}
