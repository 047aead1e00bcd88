// transforms_torch: what transforms make of an image when nothing is left to
// chance, beside the same from PyTorch's functions (transforms_torch.py).
// CALX_TEST_PLUGIN_TORCH is a Python that has torch and safetensors.
#include "calx/calx.h"
#include "support/torch.h"

enum { C = 3, H = 37, W = 53 };

static calx_value *results;

static void keep(const char *name, calx_tensor *t)
{
  const calx_status *error = calx_tensor_error(t);
  if (error != NULL) fail_msg("%s: %s", name, calx_status_message(error));
  CHECK_STATUS_OK(calx_value_set(results, name, calx_value_tensor(t)));
}

// Takes the transform; of u8 and f32.
static void apply(const char *name, calx_transform *t, calx_tensor *bytes,
                  calx_tensor *floats)
{
  char key[64];
  snprintf(key, sizeof key, "u8.%s", name);
  keep(key, calx_transform_apply(t, bytes, 1));
  snprintf(key, sizeof key, "f32.%s", name);
  keep(key, calx_transform_apply(t, floats, 1));
  calx_transform_free(t);
}

static void apply_sizes(calx_tensor *u8, calx_tensor *f32)
{
  apply("resize 20 30", calx_transforms_resize(CALX_DIMS(20, 30)), u8, f32);
  apply("resize 90 41", calx_transforms_resize(CALX_DIMS(90, 41)), u8, f32);
  apply("resize 16", calx_transforms_resize(CALX_DIMS(16)), u8, f32);
  apply("resize 30 max", calx_transforms_resize(CALX_DIMS(30), .max_size = 40),
        u8, f32);
  apply("resize plain",
        calx_transforms_resize(CALX_DIMS(20, 80), .no_antialias = true), u8,
        f32);
  apply("resize nearest",
        calx_transforms_resize(CALX_DIMS(20, 80),
                               .interpolation = CALX_INTERPOLATION_NEAREST),
        u8, f32);
  apply("resize bicubic",
        calx_transforms_resize(CALX_DIMS(20, 80),
                               .interpolation = CALX_INTERPOLATION_BICUBIC),
        u8, f32);
  apply("center 21 20", calx_transforms_center_crop(CALX_DIMS(21, 20)), u8,
        f32);
  apply("center 40 60", calx_transforms_center_crop(CALX_DIMS(40, 60)), u8,
        f32);
  const calx_padding_mode modes[] = { CALX_PADDING_CONSTANT, CALX_PADDING_EDGE,
                                      CALX_PADDING_REFLECT };
  const char *const names[] = { "pad constant", "pad edge", "pad reflect" };
  for (int k = 0; k < 3; k++) {
    // As large as the padded image: the only place.
    apply(names[k],
          calx_transforms_random_crop(CALX_DIMS(H + 6, W + 4),
                                      .padding = CALX_DIMS(1, 2, 3, 4),
                                      .padding_mode = modes[k]),
          u8, f32);
  }
  apply("whole resized",
        calx_transforms_random_resized_crop(CALX_DIMS(24), .scale = { 1, 1 },
                                            .ratio = { 53.0 / 37, 53.0 / 37 }),
        u8, f32);
}

static void apply_colours(calx_tensor *u8, calx_tensor *f32)
{
  apply("brightness", calx_transforms_color_jitter(.brightness = { 1.4, 1.4 }),
        u8, f32);
  apply("contrast", calx_transforms_color_jitter(.contrast = { 0.6, 0.6 }), u8,
        f32);
  apply("saturation", calx_transforms_color_jitter(.saturation = { 1.7, 1.7 }),
        u8, f32);
  apply("hue", calx_transforms_color_jitter(.hue = { 0.2, 0.2 }), u8, f32);
  apply("hue back", calx_transforms_color_jitter(.hue = { -0.3, -0.3 }), u8,
        f32);
  apply("to_tensor", calx_transforms_to_tensor(), u8, f32);
  const float mean[] = { 0.485F, 0.456F, 0.406F };
  const float std[] = { 0.229F, 0.224F, 0.225F };
  apply("normalize",
        calx_transforms_compose(calx_transforms_to_tensor(),
                                calx_transforms_normalize(mean, std, 3)),
        u8, f32);
}

static void apply_geometry(calx_tensor *u8, calx_tensor *f32)
{
  apply("horizontal", calx_transforms_random_horizontal_flip(1), u8, f32);
  apply("vertical", calx_transforms_random_vertical_flip(1), u8, f32);
  apply("rotate 0", calx_transforms_random_rotation(0, 0), u8, f32);
  apply("rotate nearest", calx_transforms_random_rotation(33, 33, .fill = 1),
        u8, f32);
  apply("rotate bilinear",
        calx_transforms_random_rotation(
            -20, -20, .interpolation = CALX_INTERPOLATION_BILINEAR),
        u8, f32);
}

static void test_values(void **state)
{
  (void)state;
  static uint8_t pixels[C * H * W];
  static float values[C * H * W];
  uint32_t random = 12345;
  for (size_t i = 0; i < C * H * W; i++) {
    random = random * 1664525U + 1013904223U;
    // Smooth with noise; the first pixels are grey, black and white.
    double wave = 120 + 100 * sin((double)(i % W) / 7 + (double)(i / W) / 5);
    pixels[i] = (uint8_t)(wave + (double)(random >> 24) / 8);
    if (i % (H * W) < 6) pixels[i] = (uint8_t)(i % (H * W) * 51);
    values[i] = (float)pixels[i] / 255;
  }
  results = calx_value_container(CALX_KIND_DICT);
  calx_tensor *u8 = calx_host_tensor(pixels, CALX_U8, CALX_SHAPE(C, H, W));
  calx_tensor *f32 = calx_host_tensor(values, CALX_F32, CALX_SHAPE(C, H, W));
  keep("image", u8);
  apply_sizes(u8, f32);
  apply_colours(u8, f32);
  apply_geometry(u8, f32);
  const char *path = file_in_folder("results.safetensors");
  CHECK_STATUS_OK(calx_save(results, path));
  calx_value_free(results);
  torch_run("transforms_torch.py", path, "");
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_values) };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
