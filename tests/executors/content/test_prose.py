"""Segments hold the words of a draft and nothing else, each in its place."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_run.executors.content.drafts import Draft, draft_of
from agent_run.executors.content.markdown import slug_of
from agent_run.executors.content.prose import GAP

MARKUP = st.lists(
    st.sampled_from(
        ["word", "two words. ", "# ", "\n", "\n\n", "`", "```\n", "~~~\n", "- ", "1. ", "> ",
         "[a](b)", "[", "](", ")", "![", "<b>", "</b>", "<script>", "</script>", "<!--", "-->",
         "https://a.test/x", "<https://b.test>", "*", "_", "\\", "&amp;", "&#0;", "|", "---\n",
         "===\n", "    code\n", "\t", "\r", "\r\n", "é", "\u200b", "😀", "<h1>", "</h1>",
         "<p id='x'>", "<code>", "e.g. ", "!", "[r]: http://c.test\n", "|--|--|\n"]
    ),
    max_size=60,
).map("".join)  # fmt: skip
NAMES = st.sampled_from(["a.md", "a.html", "a.txt"])


def texts(draft: Draft) -> list[str]:
    return [segment.text for segment in draft.prose.segments]


@settings(max_examples=400, deadline=None)
@given(text=st.one_of(st.text(max_size=300), MARKUP), name=NAMES)
def test_every_character_of_every_segment_has_a_place_in_the_source(
    text: str, name: str
) -> None:
    draft = draft_of(text, name)

    for segment in draft.prose.segments:
        places = [segment.origin(at) for at in range(len(segment.text))]
        assert places == sorted(places)
        assert all(0 <= place < len(text) for place in places)
        for start, end in segment.sentences():
            assert 0 <= start < end <= len(segment.text)
            first, last = draft.span(segment, start, end)
            assert 0 <= first < last <= len(text)
    for link in draft.prose.links:
        assert 0 <= link.start <= len(text)
        line, column = draft.place(link.start)
        assert line >= 1
        assert column >= 1


@settings(max_examples=200, deadline=None)
@given(words=st.lists(st.sampled_from(["alpha", "beta", "gamma."]), min_size=1, max_size=30))
def test_no_word_of_a_plain_paragraph_is_lost(words: list[str]) -> None:
    text = " ".join(words)

    for name in ("a.md", "a.html", "a.txt"):
        assert texts(draft_of(text, name)) == [text]


def test_markdown_markup_is_no_prose() -> None:
    draft = draft_of(
        "---\ntitle: no\n---\n# The *big* `code` [link](http://a.test/b_(c) 'd')\n\n"
        "Wrapped\nline &amp; [sic] snake_case <b>bold</b>.\n\n```\nno\n```\n\n    no\n\n"
        "- item\n- [ ] task\n\n> quote\n\n| a | b |\n|---|---|\n| c | d |\n"
        "<script>\nno\n</script>\n"
    )

    assert texts(draft) == [
        f"The big {GAP} link",
        "Wrapped line & [sic] snake_case bold.",
        "item",
        "task",
        "quote",
        " a ",
        " b ",
        " c ",
        " d ",
    ]
    assert [link.target for link in draft.prose.links] == ["http://a.test/b_(c)"]
    assert [one.kind for one in draft.prose.segments][:4] == [
        "heading", "paragraph", "list", "list",
    ]  # fmt: skip


def test_html_is_read_without_scripts_and_with_anchors() -> None:
    draft = draft_of(
        "<h2 id='a'>Head</h2><style>no</style><p>One <b>two</b>\n three&nbsp;x</p>"
        "<script>if (1 < 2) no</script><ul><li>item<li>other</ul><a href='#a'>up</a>",
        "a.html",
    )

    assert [one.strip(GAP) for one in texts(draft)] == [
        "Head", "One two three\xa0x", "item", "other", "up",
    ]  # fmt: skip
    assert draft.prose.anchors == {"a"}


def test_sentences_do_not_end_at_abbreviations() -> None:
    segment = draft_of("Dr. Ada met e.g. J. Doe. They spoke! Why? (No.) End").prose.segments[0]

    assert [segment.text[a:b] for a, b in segment.sentences()] == [
        "Dr. Ada met e.g. J. Doe.", "They spoke!", "Why?", "(No.)", "End",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("heading", "slug"),
    [("Hello, World!", "hello-world"), ("A  b", "a--b"), ("Über_uns 2.0", "über_uns-20")],
)
def test_headings_become_the_usual_anchors(heading: str, slug: str) -> None:
    assert slug_of(heading) == slug


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.txt"])
@pytest.mark.parametrize(
    "unit",
    ["[", "](", "`", "`a", "<", "<a ", "<!--", "<code>", "_", "a_", "http://", "> ", "|a|\n",
     "](y](x)", "e.g. ", " ", "\r", "x\n=\n", "<script>", "&"],
)  # fmt: skip
def test_reading_stays_linear_however_the_text_was_made(unit: str, name: str) -> None:
    def cost(size: int) -> float:
        started = time.process_time()
        draft_of(unit * (size // len(unit)), name)
        return time.process_time() - started

    # Quadratic reading of so much would take many minutes.
    assert cost(200_000) < 10
