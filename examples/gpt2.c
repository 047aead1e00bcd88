// Goes on with a text by the weights of a GPT-2.
//
//   gpt2 [--weights DIR] [--prompt TEXT] [--steps N] [--seed N]
//
// DIR is a folder as Hugging Face has them, openai-community/gpt2 and its
// larger ones: model.safetensors, or several such files with their index, and
// vocab.json and merges.txt. N tokens are written, or fewer: as many as the
// context takes.
#include "args.h"
#include "gpt_write.h"

// "h.11.ln_1.weight" is of layer 11.
static int64_t layers_of(const calx_value *weights)
{
  int64_t layers = 0;
  char name[32];
  do {
    snprintf(name, sizeof name, "h.%ld.ln_1.weight", (long)layers);
  } while (calx_value_get(weights, name) != NULL && ++layers < 1000);
  return layers;
}

// The sizes that the weights have; a head has 64 numbers.
static calx_status *sizes_of(const calx_value *weights, gpt_sizes *sizes)
{
  calx_tensor *wte =
      calx_value_as_tensor(calx_value_get(weights, "wte.weight"));
  calx_tensor *wpe =
      calx_value_as_tensor(calx_value_get(weights, "wpe.weight"));
  int64_t layers = layers_of(weights);
  if (wte == NULL || wpe == NULL || layers == 0 || calx_tensor_rank(wte) != 2 ||
      calx_tensor_rank(wpe) != 2 || calx_tensor_dim(wte, 1) % 64 != 0) {
    return calx_status_new(CALX_INVALID_ARGUMENT,
                           "--weights has no GPT-2: wte.weight, wpe.weight and "
                           "h.0.ln_1.weight are wanted");
  }
  *sizes = (gpt_sizes){ .vocabulary = calx_tensor_dim(wte, 0),
                        .context = calx_tensor_dim(wpe, 0),
                        .width = calx_tensor_dim(wte, 1),
                        .heads = calx_tensor_dim(wte, 1) / 64,
                        .layers = layers };
  return NULL;
}

static calx_status *load(gpt *g, const char *folder)
{
  calx_value *weights, *missing = NULL;
  gpt_sizes sizes = { 0 };
  CALX_TRY(calx_load_sharded(folder, &weights));
  calx_status *status = sizes_of(weights, &sizes);
  if (status == NULL) status = gpt_init(g, sizes);
  // The file also has the masks of attention, which are no weights.
  if (status == NULL) {
    status = calx_module_load_state_dict(g->root, weights, .not_strict = true,
                                         .out_missing = &missing);
  }
  if (status == NULL && calx_value_count(missing) != 0) {
    status = calx_status_new(CALX_INVALID_ARGUMENT, "--weights has no %s",
                             calx_value_as_string(calx_value_item(missing, 0)));
  }
  calx_value_free(missing);
  calx_value_free(weights);
  return status;
}

typedef struct {
  calx_tokenizer *tokenizer;
  calx_status *status;
} printer;

// Tokens may be parts of a character: their bytes are printed as they come.
static void put_token(void *user, int64_t token)
{
  printer *p = user;
  char *text = NULL;
  size_t bytes = 0;
  if (p->status != NULL) return;
  p->status = calx_tokenizer_decode(p->tokenizer, &token, 1, &text, &bytes);
  if (p->status == NULL) fwrite(text, 1, bytes, stdout), fflush(stdout);
  calx_string_free(text);
}

static calx_status *go_on(gpt *g, printer *p, const char *prompt, int64_t count)
{
  calx_tensor *tokens =
      calx_tokenizer_encode(p->tokenizer, prompt, strlen(prompt));
  CALX_TRY(calx_scope_take_error());
  int64_t n = calx_tensor_numel(tokens);
  if (n == 0 || n > g->sizes.context) {
    return calx_status_new(CALX_INVALID_ARGUMENT,
                           "--prompt has %ld tokens, 1 to %ld are possible",
                           (long)n, (long)g->sizes.context);
  }
  fputs(prompt, stdout);
  calx_status *status =
      gpt_write(g, calx_host_data(tokens), n, count, put_token, p);
  putchar('\n');
  if (status == NULL) return p->status;
  calx_status_free(p->status);
  return status;
}

int main(int argc, char **argv)
{
  arguments a = { .weights = "gpt2", .prompt = "Hello, I'm", .steps = 50 };
  args_read(argc, argv,
            "gpt2 [--weights DIR] [--prompt TEXT] [--steps N] [--seed N]", &a);
  char vocabulary[1024], merges[1024];
  gpt g = { 0 };
  calx_manual_seed((uint64_t)a.seed);
  snprintf(vocabulary, sizeof vocabulary, "%s/vocab.json", a.weights);
  snprintf(merges, sizeof merges, "%s/merges.txt", a.weights);
  printer p = { .tokenizer = calx_gpt2_tokenizer(vocabulary, merges) };
  calx_status *status = load(&g, a.weights);
  if (status == NULL) status = go_on(&g, &p, a.prompt, a.steps);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  gpt_free(&g);
  calx_tokenizer_free(p.tokenizer);
  calx_shutdown();
  return 0;
}
