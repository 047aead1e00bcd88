// hlo/bytecode: what a module keeps as text.
#include "hlo/bytecode_reader.h"

calx_status *cx_hlo_bytes_take_text(cx_hlo_bytecode *b, const char *at,
                                    cx_text *text, cx_hlo_str *out)
{
  calx_status *status = NULL;
  b->r->expanded += text->size;
  if (cx_text_failed(text)) {
    status = cx_out_of_memory();
  } else if (b->r->expanded > CX_HLO_EXPANSION) {
    status =
        CX_HLO_BYTES_FAIL(b, at, "attributes and types have more than %d parts",
                          CX_HLO_EXPANSION);
  } else {
    status = cx_hlo_reader_str(b->r, cx_text_str(text), text->size, out);
  }
  cx_text_free(text);
  return status;
}

calx_status *cx_hlo_bytes_text_attr(cx_hlo_bytecode *b, const char *at,
                                    cx_text *text, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(b->r->module, CX_HLO_ATTR_TEXT);
  if (attr == NULL) {
    cx_text_free(text);
    return cx_out_of_memory();
  }
  *out = attr;
  return cx_hlo_bytes_take_text(b, at, text, &attr->as.text);
}
