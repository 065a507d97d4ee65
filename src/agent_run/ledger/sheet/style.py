"""How every page that we write looks: colours by meaning, type, spacing, paper.

The words on a page never depend on a colour, and every colour of words can be read on every
ground it stands on (a test computes it).
"""

from collections.abc import Mapping
from typing import Final

LIGHT: Final[Mapping[str, str]] = {
    "ground": "#f6f6f9",
    "card": "#ffffff",
    "rule": "#e4e4ec",
    "ink": "#1b1c25",
    "soft": "#5d6072",
    "accent": "#4f4fc9",
    "good": "#136c34",
    "good-wash": "#e2f1e7",
    "bad": "#b01f37",
    "bad-wash": "#fdecee",
    "warn": "#93430a",
    "warn-wash": "#f7eadf",
}
DARK: Final[Mapping[str, str]] = {
    "ground": "#0f1015",
    "card": "#17181f",
    "rule": "#2d2f3c",
    "ink": "#e9e9f0",
    "soft": "#9ca0b4",
    "accent": "#9a9af8",
    "good": "#54d98c",
    "good-wash": "#12291c",
    "bad": "#ff8798",
    "bad-wash": "#301720",
    "warn": "#f5b04c",
    "warn-wash": "#382e25",
}


def _tokens(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


STYLE: Final = f"""
:root{{color-scheme:light dark;{_tokens(LIGHT)}}}
@media screen and (prefers-color-scheme:dark){{:root{{{_tokens(DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:0;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);
overflow-wrap:anywhere}}
.brand,main{{max-width:66rem;margin:auto;padding:1rem}}
.brand{{display:flex;gap:.5rem;align-items:center;font-weight:600;padding-bottom:0}}
.brand svg{{width:1.25rem;height:1.25rem;fill:var(--accent)}}
.brand path{{fill:none;stroke:var(--ground);stroke-width:2}}
h1{{font-size:1.6rem;line-height:1.25;margin:.25rem 0}}
h2{{font-size:1.2rem;line-height:1.3;margin:2.25rem 0 .5rem}}
h3{{font-size:1rem;margin:0 0 .25rem}}
p{{margin:.25rem 0 .75rem}}
a{{color:var(--accent)}}
.soft,caption,figcaption{{color:var(--soft)}}
figcaption{{margin-top:.25rem}}
small,.pill{{font-size:.8125rem}}
code{{font-family:ui-monospace,monospace;font-size:.875em}}
p code{{display:inline-block;max-width:100%}}
.card,.tile,.scroll{{background:var(--card);border:1px solid var(--rule);border-radius:.6rem;
margin:0 0 .75rem}}
.card{{padding:.8rem 1rem}}
.card.good{{border-left:3px solid var(--good)}}
.card.bad{{border-left:3px solid var(--bad)}}
.card.warn{{border-left:3px solid var(--warn)}}
.card>h2{{margin-top:0}}
.card>ul{{margin:0;padding-left:1.2rem}}
.card .scroll{{margin:.5rem 0}}
.tiles,.plots{{display:grid;gap:.75rem;grid-template-columns:repeat(auto-fit,minmax(6.5rem,1fr));
margin:1rem 0;padding:0;list-style:none}}
.plots{{grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr))}}
.tile,.plots .card{{margin:0}}
.tile{{padding:.7rem .9rem;border-top:3px solid var(--soft)}}
.tile b{{font-size:1.5rem;line-height:1.2}}
.tile span,.tile small{{display:block;color:var(--soft)}}
.tile.good{{border-top-color:var(--good)}}
.tile.bad{{border-top-color:var(--bad)}}
.tile.warn{{border-top-color:var(--warn)}}
.pill{{display:inline-block;border-radius:1rem;padding:0 .6rem;font-weight:600;
text-decoration:none;background:var(--rule);color:var(--ink)}}
h1 .pill{{font-size:1.2rem}}
a.pill{{margin:.1rem .15rem .1rem 0}}
a.pill:hover{{text-decoration:underline}}
.pill.good{{color:var(--good);background:var(--good-wash)}}
.pill.bad{{color:var(--bad);background:var(--bad-wash)}}
.pill.warn{{color:var(--warn);background:var(--warn-wash)}}
.rows{{list-style:none;padding:0;margin:0}}
.rows li{{display:grid;gap:.25rem .75rem;grid-template-columns:1fr auto;padding:.5rem .75rem;
background:var(--card);border:1px solid var(--rule);margin-bottom:-1px}}
.rows a:first-child{{justify-self:start}}
.rows li>:last-child{{grid-column:1/-1}}
@media(min-width:48rem){{.rows li{{grid-template-columns:15rem 8rem 1fr}}
.rows li>:last-child{{grid-column:auto}}}}
.rows .soft{{white-space:nowrap}}
.scroll{{overflow:auto}}
.long{{max-height:36rem}}
.long thead th{{position:sticky;top:0;z-index:1;background:var(--card)}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}}
caption{{text-align:left;padding:.5rem .75rem;position:sticky;left:0}}
th,td{{text-align:left;vertical-align:top;padding:.35rem .75rem;
border-top:1px solid var(--rule);min-width:6rem;max-width:28rem}}
thead th{{color:var(--soft);font-weight:500;vertical-align:bottom}}
tbody th{{font-weight:500;position:sticky;left:0;background:var(--card);
max-width:min(28rem,45vw)}}
.n{{text-align:right;white-space:nowrap;min-width:0}}
td svg{{display:block;width:100%;min-width:5rem;height:.5rem;margin-top:.5em}}
.said{{white-space:pre-line;max-height:20rem;overflow:auto}}
summary{{cursor:pointer;color:var(--soft)}}
:focus-visible{{outline:2px solid var(--accent);outline-offset:2px}}
figure svg{{display:block;width:100%;height:auto}}
figure text{{fill:var(--soft);font-size:13px}}
.grid{{stroke:var(--rule)}}
.line{{fill:none;stroke:var(--accent);stroke-width:2}}
.dot,.bar{{fill:var(--accent)}}
.fell{{fill:var(--bad-wash)}}
figure text.fall{{fill:var(--bad)}}
@media print{{:root{{color-scheme:light}}body{{background:#fff;font-size:10pt}}
.long,.said{{max-height:none;overflow:visible}}
details::details-content{{content-visibility:visible;block-size:auto}}
h2,h3{{break-after:avoid}}tr,.tile,figure{{break-inside:avoid}}}}
"""
