// base/plot_style: the colours of plots. They are attributes of the elements,
// which the style sheet's rules replace on dark screens.
#include "base/plot.h"
#include "base/plot_parts.h"

enum { COLOURS = 8 };

static const char *const light[COLOURS] = { "#2563c9", "#d9480f", "#2b8a3e",
                                            "#9c36b5", "#c2255c", "#0b7285",
                                            "#8f6400", "#5c636a" };
static const char *const dark[COLOURS] = { "#6ea8fe", "#ff922b", "#69db7c",
                                           "#da77f2", "#f783ac", "#3bc9db",
                                           "#ffd43b", "#adb5bd" };

void cx_plot_group(cx_text *out, size_t k)
{
  k %= COLOURS;
  cx_text_format(out, "<g class=\"s%zu\" stroke=\"%s\" fill=\"%s\">\n", k,
                 light[k], light[k]);
}

void cx_plot_style(cx_text *out)
{
  cx_text_append(out,
                 ".plot .p:hover{fill-opacity:1}\n"
                 "@media(prefers-color-scheme:dark){"
                 ".plot .t{fill:#e6edf3}.plot .l{fill:#9198a1}"
                 ".plot .g{stroke:#30363d}.plot .a{stroke:#6e7681}"
                 ".plot .b{fill:#161b22}.plot .m{stroke:#ff7b72;fill:#ff7b72}");
  for (int k = 0; k < COLOURS; k++) {
    cx_text_format(out, ".plot .s%d{stroke:%s;fill:%s}", k, dark[k], dark[k]);
  }
  cx_text_append(out, "}\n");
}
