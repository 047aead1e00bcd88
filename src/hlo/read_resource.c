// hlo/reader: the file's metadata, which holds the blobs of dense_resource.
//
// The metadata comes at the end of the file, behind the uses of the blobs. So
// the first use searches for it, and the reader passes it where it is.
#include <string.h>

#include "hlo/reader.h"

// file-metadata ::= '{-#' … '#-}'
calx_status *cx_hlo_skip_metadata(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  const char *from = s->at;
  s->at += 3;
  while (cx_hlo_scan_peek(s) != '\0') {
    cx_hlo_str string;
    if (*s->at == '"') {
      CALX_TRY(cx_hlo_scan_quoted(s, &string));
    } else if (cx_hlo_scan_accept(s, "#-}")) {
      return NULL;
    } else {
      s->at++;
    }
  }
  return CX_HLO_FAIL(r, from, "the metadata is not closed");
}

calx_status *cx_hlo_read_key(cx_hlo_reader *r, cx_hlo_str *out)
{
  if (cx_hlo_scan_peek(&r->scan) == '"') {
    return cx_hlo_scan_quoted(&r->scan, out);
  }
  *out = cx_hlo_scan_suffix(&r->scan);
  return out->n == 0 ? cx_hlo_scan_expected(&r->scan, "a key") : NULL;
}

// ---- the search ----

// Goes to the metadata; false: there is none behind the cursor.
static bool find_metadata(cx_hlo_scan *s)
{
  for (cx_hlo_scan_space(s); s->at < s->end; cx_hlo_scan_space(s)) {
    cx_hlo_str ignored;
    if (*s->at == '{' && cx_hlo_scan_sees(s, "{-#")) return true;
    if (*s->at == '"') {
      calx_status *status = cx_hlo_scan_quoted(s, &ignored);
      calx_status_free(status);
      if (status != NULL) return false;
    } else {
      s->at++;
    }
  }
  return false;
}

// key ':' string
static calx_status *read_blob(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_str key = { NULL, 0 };
  cx_hlo_resource *blob = CX_ARENA_NEW(&r->module->arena, cx_hlo_resource);
  if (blob == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_read_key(r, &key));
  CALX_TRY(cx_hlo_scan_need(s, ":"));
  CALX_TRY(cx_hlo_scan_quoted(s, &blob->text));
  return cx_hlo_names_add(&r->resources, key, blob, 1) ? NULL
                                                       : cx_out_of_memory();
}

// Searches for the named entry of (key ':' '{' … '}' (',' …)*)? end.
// *out_found: the cursor is at the brace of the entry.
static calx_status *find_entry(cx_hlo_reader *r, const char *name,
                               const char *end, bool *out_found)
{
  cx_hlo_scan *s = &r->scan;
  *out_found = false;
  while (!cx_hlo_scan_accept(s, end)) {
    cx_hlo_str key = { NULL, 0 };
    CALX_TRY(cx_hlo_read_key(r, &key));
    CALX_TRY(cx_hlo_scan_need(s, ":"));
    *out_found = cx_hlo_str_equal(key, name);
    if (*out_found) return NULL;
    CALX_TRY(cx_hlo_scan_balanced(s));
    cx_hlo_scan_accept(s, ",");
  }
  return NULL;
}

// '{-#' 'dialect_resources' ':' '{' 'builtin' ':' '{' blobs '}' … '#-}'
static calx_status *read_resources(cx_hlo_reader *r)
{
  bool found = false;
  if (!find_metadata(&r->scan)) return NULL;
  r->scan.at += 3;
  CALX_TRY(find_entry(r, "dialect_resources", "#-}", &found));
  if (!found) return NULL;
  CALX_TRY(cx_hlo_scan_need(&r->scan, "{"));
  CALX_TRY(find_entry(r, "builtin", "}", &found));
  return found ? cx_hlo_read_items(r, "{", '}', read_blob) : NULL;
}

calx_status *cx_hlo_find_resource(cx_hlo_reader *r, cx_hlo_str key,
                                  const char *at, cx_hlo_resource **out)
{
  if (!r->has_resources) {
    const char *here = r->scan.at;
    r->has_resources = true;
    CALX_TRY(read_resources(r));
    r->scan.at = here;
  }
  const cx_hlo_name *known = cx_hlo_names_find(&r->resources, key);
  *out = known == NULL ? NULL : known->item;
  if (known != NULL) return NULL;
  return CX_HLO_FAIL(r, at, "there is no resource '%.*s'", (int)key.n, key.s);
}
