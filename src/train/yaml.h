// train/yaml: a YAML file as a tree, and its texts. The file may be hostile:
// its size, its depth, its anchors, its nodes and those that are looked at, of
// which aliases can make many of a few, are bounded.
#ifndef CX_TRAIN_YAML_H
#define CX_TRAIN_YAML_H

#include <stddef.h>
#include <yaml.h>

#include "base/text.h"
#include "calx/status.h"

typedef struct cx_train_yaml {
  const char *path;  // for messages
  yaml_parser_t parser;
  yaml_document_t document;
  int visits, depth;  // of nodes that are looked at
} cx_train_yaml;

// The file's only document in UTF-8, from memory; afterwards
// cx_train_yaml_close().
calx_status *cx_train_yaml_open(cx_train_yaml *y, const char *path,
                                const char *data, size_t size) CALX_MUST_USE;
void cx_train_yaml_close(cx_train_yaml *y);
// NULL: the file is empty.
yaml_node_t *cx_train_yaml_root(cx_train_yaml *y);

// "FILE:LINE: SENTENCE" for a failure at a node. NULL stays NULL.
calx_status *cx_train_yaml_at(const cx_train_yaml *y, const yaml_node_t *node,
                              calx_status *status) CALX_MUST_USE;

// A scalar's text, which a message may show: without control characters. "null"
// for nothing.
calx_status *cx_train_yaml_text(const cx_train_yaml *y, const yaml_node_t *node,
                                const char **out) CALX_MUST_USE;
// "[1, 8]" of a list of texts.
calx_status *cx_train_yaml_list(cx_train_yaml *y, const yaml_node_t *list,
                                cx_text *out) CALX_MUST_USE;

typedef calx_status *cx_train_yaml_fn(cx_train_yaml *y, const char *key,
                                      yaml_node_t *value, void *user);
// Calls a function for each key of a mapping, those that "<<: *other" brings
// first, so that the mapping's own win; and for each element of a list, of
// which "0" is the first.
calx_status *cx_train_yaml_each(cx_train_yaml *y, const yaml_node_t *node,
                                cx_train_yaml_fn *fn, void *user) CALX_MUST_USE;
#endif
