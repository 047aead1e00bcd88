// base/html: see html.h.
#include "base/html.h"

#include "base/plot.h"

static const char style[] =
    ":root{color-scheme:light dark;--back:#f6f8fa;--card:#fff;--text:#1f2328;"
    "--dim:#59636e;--line:#d8dee4;--row:#f6f8fa;--link:#2563c9;"
    "--good:#1a7f37;--look:#9a6700;--bad:#c62828}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#0d1117;--card:#161b22;"
    "--text:#e6edf3;--dim:#9198a1;--line:#30363d;--row:#1c2128;--link:#6ea8fe;"
    "--good:#3fb950;--look:#d29922;--bad:#ff7b72}}\n"
    "*{box-sizing:border-box}\n"
    "body{font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,"
    "\"DejaVu Sans\",sans-serif;color:var(--text);background:var(--back);"
    "margin:0 auto;max-width:76rem;padding:1.5rem 1rem 3rem}\n"
    "h1{font-size:1.5rem;line-height:1.25;margin:0;overflow-wrap:anywhere}\n"
    "h2{font-size:1.1rem;margin:0 0 .7rem}\n"
    "h3{font-size:.95rem;margin:1.2rem 0 .4rem;color:var(--dim)}\n"
    "header{margin:0 0 1.25rem}header p{margin:.35rem 0 0}\n"
    "section{background:var(--card);border:1px solid var(--line);"
    "border-radius:8px;padding:1rem 1.25rem;margin:0 0 1rem;overflow-x:auto}\n"
    "table{border-collapse:collapse;width:100%;font-size:.93rem}\n"
    "td,th{border-bottom:1px solid var(--line);padding:.35rem .6rem;"
    "text-align:left;vertical-align:top;overflow-wrap:anywhere;"
    "unicode-bidi:isolate}\n"
    "tr:last-child>td,tr:last-child>th{border-bottom:0}\n"
    "th{font-weight:600}thead th{color:var(--dim);background:var(--row)}\n"
    ".pairs th{width:30%;color:var(--dim);font-weight:400}\n"
    ".numbers td+td,.numbers th+th{text-align:right;white-space:nowrap;"
    "font-variant-numeric:tabular-nums}"
    ".numbers td:first-child{min-width:9rem}\n"
    "pre{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"
    "\"DejaVu Sans Mono\",monospace;margin:.3rem 0;overflow:auto;max-height:40rem}\n"
    "td pre{white-space:pre-wrap}\n"
    "ul{margin:.4rem 0;padding-left:1.2rem}li{margin:.2rem 0}\n"
    "summary{cursor:pointer;font-weight:600}\n"
    "details[open]>summary{margin-bottom:.6rem}\n"
    ".dim,.dim td{color:var(--dim)}\n"
    ".grid{display:grid;align-items:start;gap:1rem;margin:0 0 1rem;grid-template-columns:"
    "repeat(auto-fit,minmax(min(100%,30rem),1fr))}.grid>section{margin:0}\n"
    ".plots{display:grid;gap:1rem 1.5rem;grid-template-columns:"
    "repeat(auto-fit,minmax(min(100%,27rem),1fr))}\n"
    ".state{display:inline-block;font-size:.8rem;font-weight:600;"
    "border:1px solid;border-radius:1em;padding:.05rem .65rem;"
    "margin-left:.6rem;vertical-align:.2em}\n"
    ".v{font-weight:600;white-space:nowrap}\n"
    ".v0{color:var(--dim)}.v1{color:var(--good)}.v2{color:var(--look)}"
    ".v3{color:var(--bad)}\n"
    "svg{display:block;width:100%;height:auto}\n"
    "@media print{body{background:none;max-width:none}"
    "section{break-inside:avoid}}\n";

void cx_html_escape(cx_text *out, const char *text)
{
  for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
    const size_t n = cx_text_utf8(p);
    const bool control = (*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f;
    const bool dropped = n == 2 && p[0] == 0xc2 && p[1] < 0xa0;
    // U+FFFE and U+FFFF are no characters of XML.
    const bool none = n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe;
    if (*p == '<') {
      cx_text_append(out, "&lt;");
    } else if (*p == '>') {
      cx_text_append(out, "&gt;");
    } else if (*p == '&') {
      cx_text_append(out, "&amp;");
    } else if (*p == '"') {
      cx_text_append(out, "&quot;");
    } else if (control || n == 0 || none) {
      cx_text_char(out, control ? ' ' : '?');
    } else if (!dropped) {
      cx_text_append_n(out, (const char *)p, n);
    }
    p += n == 0 ? 1 : n;
  }
}

void cx_html_begin(cx_text *out, const char *title)
{
  cx_text_append(out,
                 "<!DOCTYPE html>\n"
                 "<html lang=\"en\">\n"
                 "<head>\n<meta charset=\"utf-8\"/>\n"
                 "<meta name=\"viewport\" "
                 "content=\"width=device-width,initial-scale=1\"/>\n<title>");
  cx_html_escape(out, title);
  cx_text_append(out, "</title>\n<style>\n");
  cx_text_append(out, style);
  cx_plot_style(out);
  cx_text_append(out, "</style>\n</head>\n<body>\n");
}

void cx_html_end(cx_text *out)
{
  cx_text_append(out, "</body>\n</html>\n");
}

void cx_html_pair(cx_text *out, const char *name, const char *value)
{
  cx_text_append(out, "<tr><th>");
  cx_html_escape(out, name);
  cx_text_append(out, "</th><td>");
  cx_html_escape(out, value);
  cx_text_append(out, "</td></tr>\n");
}
