"""What all pages share: words that do nothing, colours that can be read, a frame that fetches
nothing.
"""

import base64
import hashlib
import itertools
import re
from collections.abc import Mapping

import pytest

from agent_run.ledger.sheet.parts import (
    Grid,
    Tile,
    pill,
    prose,
    table,
    tiles,
    whole_page,
    words,
)
from agent_run.ledger.sheet.style import DARK, LIGHT
from tests.support.page_reading import PageReader

PAIRS = (
    *itertools.product(("ink", "soft", "accent"), ("ground", "card")),
    ("ink", "rule"),
    ("bad", "bad-wash"),
    ("good", "good-wash"),
    ("warn", "warn-wash"),
)


def _light_of(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS)
def test_every_colour_of_words_can_be_read(
    colours: Mapping[str, str], ink: str, ground: str
) -> None:
    dim, bright = sorted((_light_of(colours[ink]), _light_of(colours[ground])))

    assert (bright + 0.05) / (dim + 0.05) >= 4.5


def test_the_policy_allows_this_one_style_and_nothing_else() -> None:
    page = whole_page("t", [words("hello")])

    (style,) = re.findall(r"<style>(.*)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'Security-Policy" content="([^"]*)"', page)
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_words_of_strangers_are_only_words() -> None:
    assert words("<b>\"&'") == "&lt;b&gt;&quot;&amp;&#x27;"
    assert words("a\nb\x00\u202e\ud800") == "a\\nb\\x00\\u202e\\ud800"
    assert prose("one\r\ntwo\u202e\n") == "one\ntwo\\u202e"
    assert pill("<i>", "bad", to="x") == '<a class="pill bad" href="#x">&lt;i&gt;</a>'


def test_joiners_stay_because_emoji_and_scripts_need_them() -> None:
    family, persian = "👩\u200d👧", "می\u200cشود"

    assert (words(family), words(persian)) == (family, persian)


def test_a_text_that_is_cut_says_so() -> None:
    assert words("x" * 2_000, longest=3) == "xxx… (2,000 characters)"
    assert words("xxx", longest=3) == "xxx"


def test_a_table_names_its_rows_and_columns_and_can_be_scrolled_by_key() -> None:
    rows = [[words("tone"), words("3"), words("")]]

    page = whole_page("t", [words("")])
    made = table(Grid("t1", words("Steps"), ("Step", "Tasks", "Note"), rows, numbers=(1,)))
    read = PageReader(page.replace("<main>", f"<main><h1>t</h1>{made}"))

    assert read.faults == []
    assert '<th scope="row">tone</th><td class="n">3</td><td>&ndash;</td>' in made
    assert 'role="region" aria-labelledby="t1" tabindex="0"' in made


def test_tiles_carry_a_number_its_name_and_what_it_is_from() -> None:
    made = tiles([Tile("fail", "6", "of 8 drafts", "bad")])

    assert '<li class="tile bad"><b>6</b><span>fail</span><small>of 8 drafts</small>' in made
