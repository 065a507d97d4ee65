"""A link to a part of a web page is looked for in the page, as far as that can be known."""

from typing import Final

import anyio
import pytest

from agent_run.executors.content.addresses import Door
from agent_run.executors.content.drafts import draft_of
from agent_run.executors.content.fetching import Manners
from agent_run.executors.content.links import LinkChecker
from agent_run.executors.content.remarks import Check
from tests.executors.content.server import Site

QUICK: Final = Manners(seconds=2.0, url_seconds=5.0, all_seconds=60.0, pause=0.01)


def checked(text: str) -> Check:
    checker = LinkChecker(door=Door(allow_private=True), manners=QUICK)
    return anyio.run(checker.check, draft_of(text))


@pytest.mark.parametrize(
    "target",
    ["/page#here", "/page#", "/page#top", "/page#caf%C3%A9", "/page#here:~:text=x", "/own#here",
     "/page#:~:text=any", "/page#/route", "/scripted#here", "/strange#here"],
)  # fmt: skip
def test_a_part_that_is_there_is_fine(site: Site, target: str) -> None:
    assert checked(f"<{site.url}{target}>").remarks == ()


@pytest.mark.parametrize(
    ("target", "rule", "said"),
    [
        ("/page#gone", "links.broken", "has no part 'gone'"),
        ("/page#Here", "links.broken", "has no part 'Here'"),
        ("/scripted#gone", "links.part", "unless a script makes it"),
        ("/long#here", "links.unread", "was not checked: the page is longer than 1 MB"),
        ("/huge#here", "links.unread", "was not checked"),
        ("/report.pdf#page=2", "links.unread", "'application/pdf' and not HTML"),
        ("/missing#here", "links.broken", "HTTP 404"),
        ("/page-moved#here", "links.moved", "moved for good"),
    ],
)
def test_a_part_that_is_not_found_is_named(
    site: Site, target: str, rule: str, said: str
) -> None:
    check = checked(f"<{site.url}{target}>")

    assert [one.rule for one in check.remarks] == [rule]
    assert said in check.remarks[0].message
    assert (check.status == "failed") == (rule == "links.broken")
    if rule != "links.broken":
        assert check.confidence == pytest.approx(0.98)


def test_a_page_with_many_parts_is_asked_for_once(site: Site) -> None:
    check = checked(f"<{site.url}/page> <{site.url}/page#here> <{site.url}/page#gone>")

    assert site.asked == {"GET /page": 1}
    assert [one.column for one in check.remarks] == [len(f"<{site.url}/page> ") * 2 + 7]


def test_a_part_of_a_page_that_moved_moves_with_it(site: Site) -> None:
    check = checked(f"<{site.url}/page-moved#here>")

    assert check.remarks[0].suggestion == f"{site.url}/page#here"
