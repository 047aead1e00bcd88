// cli/devices: what a plugin says of itself and of its devices.
#include <inttypes.h>
#include <stdio.h>

#include "args.h"
#include "commands.h"
#include "pjrt/pjrt.h"

static const char help[] =
    "usage: calx devices [--plugin NAME|PATH]\n"
    "\n"
    "Opens a PJRT plugin and tells its name, file and version, the platform,\n"
    "and of each device the kind, the kinds of memory and how much is used.\n"
    "\n"
    "  --plugin NAME|PATH  calx or cpu (the library's own engine), xla-cpu,\n"
    "                      tpu, cuda, a name that is given by\n"
    "                      PJRT_NAMES_AND_LIBRARY_PATHS, or a file; else\n"
    "                      CALX_PLUGIN, PJRT_DEVICE, or what is there\n";

static void print_bytes(const char *name, int64_t bytes, bool *any)
{
  if (bytes < 0) return;
  printf("%s%s %" PRId64, *any ? ", " : "", name, bytes);
  *any = true;
}

static void print_memory(cx_pjrt_client *c, size_t device)
{
  printf("  memories:    ");
  size_t n = cx_pjrt_client_device(c, device)->n_memories;
  for (size_t i = 0; i < n; i++) {
    printf(" %s%s", cx_pjrt_client_device(c, device)->memories[i],
           i + 1 < n ? "," : "");
  }
  printf("%s\n  memory:       ", n == 0 ? " not told" : "");
  cx_pjrt_memory_stats stats;
  // A plugin need not keep statistics.
  calx_status_free(cx_pjrt_device_memory_stats(c, device, &stats));
  bool any = false;
  print_bytes("bytes in use", stats.bytes_in_use, &any);
  print_bytes("peak", stats.peak_bytes_in_use, &any);
  print_bytes("limit", stats.bytes_limit, &any);
  puts(any ? "" : "not told");
}

static void print_client(cx_pjrt_client *c)
{
  cx_pjrt_plugin *plugin = cx_pjrt_client_plugin(c);
  int major, minor;
  cx_pjrt_plugin_version(plugin, &major, &minor);
  printf("plugin:           %s\n", cx_pjrt_plugin_name(plugin));
  printf("path:             %s\n", cx_pjrt_plugin_path(plugin));
  printf("PJRT version:     %d.%d\n", major, minor);
  printf("platform:         %s\n", cx_pjrt_client_platform(c));
  printf("platform version: %s\n", cx_pjrt_client_platform_version(c));
  cx_text attributes = { 0 };
  cx_pjrt_plugin_describe(plugin, &attributes);
  fputs(cx_text_str(&attributes), stdout);
  cx_text_free(&attributes);
  size_t n = cx_pjrt_client_device_count(c);
  printf("devices:          %zu\n", n);
  for (size_t i = 0; i < n; i++) {
    printf("xla:%zu\n", i);
    printf("  kind:         %s\n", cx_pjrt_client_device(c, i)->kind);
    printf("  id:           %d\n", cx_pjrt_client_device(c, i)->id);
    printf("  name:         %s\n", cx_pjrt_client_device(c, i)->text);
    print_memory(c, i);
  }
}

static calx_status *open_and_print(const char *name)
{
  cx_pjrt_plugin *plugin = NULL;
  cx_pjrt_client *client = NULL;
  CALX_TRY(cx_pjrt_plugin_open(name, &plugin));
  CALX_TRY(cx_pjrt_client_open(plugin, NULL, &client));
  print_client(client);
  cx_pjrt_client_close(client);
  return NULL;
}

int cx_cli_devices(int argc, char **argv)
{
  const char *plugin = NULL;
  const cx_cli_option options[] = { { "--plugin", CX_CLI_TEXT, &plugin } };
  const cx_cli_command command = { "calx devices", help, options, 1, 0, 0 };
  cx_cli_list words;
  int code = cx_cli_args_read(&command, argc, argv, &words);
  if (code == CX_CLI_GO_ON) {
    calx_status *status = open_and_print(plugin);
    code = status == NULL ? CX_CLI_OK : CX_CLI_FAILED;
    cx_cli_complain(status);
    code = cx_cli_end(code);
  }
  cx_cli_args_free(&command, &words);
  return code;
}
