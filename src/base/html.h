// base/html: one HTML page that needs nothing but itself: no script, nothing
// from elsewhere, for light and dark screens. It is well-formed XML too.
#ifndef CX_BASE_HTML_H
#define CX_BASE_HTML_H

#include "base/text.h"

// A text from anywhere, for elements and for attributes in double quotes. What
// is not UTF-8 becomes question marks, control characters become spaces but for
// line breaks and tabs.
void cx_html_escape(cx_text *out, const char *text);

// From the doctype to the first section, and the end. What follows the head is
// sections: <section><h2>…</h2>…</section>. Classes that the style knows: grid
// of sections or plots, pairs and numbers of tables, dim of less important
// text.
void cx_html_begin(cx_text *out, const char *title);
void cx_html_end(cx_text *out);

// A row of a table: a name and its value.
void cx_html_pair(cx_text *out, const char *name, const char *value);

#endif
