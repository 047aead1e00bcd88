// train/options_environment: CALX_TRAINER_MAX_EPOCHS=5 for an option that
// nobody gave. Source: Lightning's PL_TRAINER_*.
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "train/options_table.h"

#define PREFIX "CALX_TRAINER_"

static void report_unknown(const char *variable, const char *name)
{
  char nearest[64] = "";
  const char *closest = cx_train_closest_option(name);
  for (size_t i = 0; closest[i] != '\0' && i + 1 < sizeof nearest; i++) {
    nearest[i] = (char)toupper((unsigned char)closest[i]);
  }
  cx_log_once_per_site(
      variable, "%s is no option of the trainer; the nearest is " PREFIX "%s",
      variable, nearest);
}

// An entry NAME=VALUE of the environment.
static calx_status *take_variable(cx_train_given *g, const char *entry)
{
  char variable[96], name[96] = "";
  const char *value = strchr(entry, '=');
  if (value == NULL || value[1] == '\0') return NULL;
  snprintf(variable, sizeof variable, "%.*s", (int)(value - entry), entry);
  for (size_t i = strlen(PREFIX), k = 0; variable[i] != '\0'; i++, k++) {
    name[k] = (char)tolower((unsigned char)variable[i]);
  }
  const cx_train_option *option = cx_train_find_option(name);
  if (option == NULL) {
    report_unknown(variable, name);
    return NULL;
  }
  if (g->is_given[option - cx_train_options]) return NULL;
  return cx_train_error_from(cx_train_given_set(g, option, name, value + 1),
                             variable);
}

calx_status *cx_train_given_environment(cx_train_given *g)
{
  if (g->options.no_environment) return NULL;
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
    if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0) continue;
    CALX_TRY(take_variable(g, *entry));
  }
  g->options.no_environment = true;
  return NULL;
}

calx_status *cx_train_given_end(cx_train_given *g, calx_trainer_options *out)
{
  CALX_TRY(cx_train_given_environment(g));
  memcpy(out, &g->options, g->size);
  return NULL;
}
