"""Our pages in a real browser: what only a browser can tell.

Needs a Chromium on the machine; `python3 run.py everything` runs it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_run.ledger.metrics.report import measure
from agent_run.ledger.metrics.web_page import web_page
from agent_run.ledger.sheet.style import DARK, LIGHT
from agent_run.recipes.qa.page import to_html
from tests.recipes.support import CLEAN, FLAWED, check, draft, opened, wanted
from tests.support.browser import Tab, browser, installed_browser
from tests.support.page_samples import HOSTILE, LONG, a_week, hostile, one_task

pytestmark = pytest.mark.browser

PAGES = ("metrics", "metrics-empty", "metrics-one", "metrics-hostile", "qa", "qa-hostile")
STRANGE = f"<b>{'x' * 200}\u202e.md"
ODD = f"# {LONG}\n\n{HOSTILE} recieved [a]({LONG}.md) the the\n"
WIDE = "document.documentElement.scrollWidth"
OUTSIDE = """[...document.querySelectorAll('main *')].filter(one => {
  if (one.closest('.scroll, .said')) return false;
  const box = one.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1);
}).map(one => one.outerHTML.slice(0, 80))"""
SMALL = """[...document.querySelectorAll('main *')].filter(one =>
  [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())
  && one.getClientRects().length
  && parseFloat(getComputedStyle(one).fontSize)
     * (one.ownerSVGElement ? one.getScreenCTM().a : 1) < 9.5
).map(one => one.outerHTML.slice(0, 80))"""
UNREADABLE = """(() => {
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(one => one / 255)
    .map(one => one <= .04045 ? one / 12.92 : ((one + .055) / 1.055) ** 2.4)
    .reduce((sum, one, place) => sum + one * [.2126, .7152, .0722][place], 0);
  const ground = one => {
    for (; one; one = one.parentElement) {
      const found = parts(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('body *')].filter(one => {
    const said = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!said || !one.getClientRects().length) return false;
    const style = getComputedStyle(one);
    const ink = light(parts(one.ownerSVGElement ? style.fill : style.color));
    const paper = light(ground(one));
    return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05) < 4.5;
  }).map(one => one.outerHTML.slice(0, 80));
})()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    program = installed_browser()
    assert program is not None, "no Chromium on this machine; Debian has it as 'chromium'"
    with browser(program, tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    title = "Metrics of a folder"
    made = {
        "metrics": web_page(a_week(), title=title),
        "metrics-empty": web_page(measure([]), title=title),
        "metrics-one": web_page(one_task(), title=title),
        "metrics-hostile": web_page(hostile(), title=HOSTILE + LONG),
        "qa": _report(tmp_path_factory.mktemp("qa"), {"clean.md": CLEAN, "flawed.md": FLAWED}),
        "qa-hostile": _report(tmp_path_factory.mktemp("hostile"), {STRANGE: ODD}),
    }
    for name, page in made.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


def _report(folder: Path, drafts: dict[str, str]) -> str:
    names = [draft(folder, name, text.replace("\x00", "")) for name, text in drafts.items()]
    goals = ("Would a child understand it", "brand tone", "links", "spelling")
    with opened(folder) as desk:
        return to_html(check(folder, desk, names, wanted(folder, goals)), None)


@pytest.mark.parametrize("width", [1280, 768, 375, 320])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_leaves_the_window_and_nothing_is_too_small_to_read(
    tab: Tab, pages: Path, name: str, width: int
) -> None:
    tab.look(pages / f"{name}.html", width=width)

    assert tab.tell(WIDE) <= width
    assert tab.tell(OUTSIDE) == []
    assert tab.tell(SMALL) == []


@pytest.mark.parametrize("name", PAGES)
def test_the_browser_has_nothing_to_complain_of_and_fetches_nothing(
    tab: Tab, pages: Path, name: str
) -> None:
    page = pages / f"{name}.html"

    tab.look(page, width=1280)

    assert tab.complaints == []
    assert tab.requests == [page.as_uri()]
    assert tab.tell("document.scripts.length + document.images.length") == 0


@pytest.mark.parametrize(("scheme", "colours"), [("light", LIGHT), ("dark", DARK)])
@pytest.mark.parametrize("name", PAGES)
def test_all_words_can_be_read_by_day_and_by_night(
    tab: Tab, pages: Path, name: str, scheme: str, colours: dict[str, str]
) -> None:
    tab.look(pages / f"{name}.html", width=1280, scheme=scheme)

    wanted_ground = ", ".join(str(int(colours["ground"][at : at + 2], 16)) for at in (1, 3, 5))
    ground = tab.tell("getComputedStyle(document.body).backgroundColor")
    assert ground == f"rgb({wanted_ground})"  # so the policy lets the style through
    assert tab.tell(UNREADABLE) == []


@pytest.mark.parametrize("name", ["metrics", "qa"])
def test_a_screen_reader_hears_names_for_all_that_has_one(
    tab: Tab, pages: Path, name: str
) -> None:
    tab.look(pages / f"{name}.html", width=1280)

    heard = [
        (str(node["role"]["value"]), str(node.get("name", {}).get("value", "")))
        for node in tab.outline()
    ]
    roles = {role for role, _ in heard}
    assert {"main", "heading", "table", "columnheader", "rowheader", "region"} <= roles
    named = {"heading", "table", "region", "image", "link", "columnheader", "rowheader"}
    assert [(role, word) for role, word in heard if role in named and not word] == []


@pytest.mark.parametrize("name", ["metrics", "qa"])
def test_the_first_key_reaches_the_first_link_and_it_shows(
    tab: Tab, pages: Path, name: str
) -> None:
    tab.look(pages / f"{name}.html", width=1280)

    tab.press("Tab")

    assert tab.tell("document.activeElement.tagName") == "A"
    assert tab.tell("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_on_paper_nothing_is_folded_away_or_cut(tab: Tab, pages: Path) -> None:
    tab.look(pages / "qa.html", width=794, media="print")

    hidden = "[...document.querySelectorAll('details section')].filter(o => !o.offsetHeight)"
    assert tab.tell("document.querySelectorAll('details section').length") > 0
    assert tab.tell(f"{hidden}.length") == 0
    assert tab.tell(WIDE) <= 794
    assert tab.printed().startswith(b"%PDF")
