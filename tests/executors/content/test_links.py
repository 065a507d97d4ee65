"""Links against a real server on this machine, which behaves as badly as servers do."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import pytest

from agent_run.executors.content.addresses import Door, is_public
from agent_run.executors.content.drafts import draft_of, read_draft
from agent_run.executors.content.fetching import Manners
from agent_run.executors.content.links import LinkChecker
from agent_run.executors.content.remarks import Check
from tests.executors.content.server import Site

QUICK: Final = Manners(seconds=1.0, url_seconds=5.0, all_seconds=60.0, pause=0.01)


def checked(text: str, *, manners: Manners = QUICK, private: bool = True) -> Check:
    async def run() -> Check:
        checker = LinkChecker(door=Door(allow_private=private), manners=manners)
        return await checker.check(draft_of(text))

    return anyio.run(run)


def link_to(site: Site, path: str) -> str:
    return f"See [this page]({site.url}{path})."


def rules(check: Check) -> list[str]:
    return [remark.rule for remark in check.remarks]


def test_a_page_that_answers_passes_and_is_asked_without_a_body(site: Site) -> None:
    check = checked(link_to(site, "/ok"))

    assert check.status == "passed"
    assert check.remarks == ()
    assert site.asked == {"HEAD /ok": 1}


@pytest.mark.parametrize(
    ("path", "rule", "said"),
    [
        ("/missing", "links.broken", "HTTP 404"),
        ("/gone", "links.broken", "HTTP 410"),
        ("/private", "links.unsure", "HTTP 401"),
        ("/wrong", "links.unsure", "HTTP 500"),
        ("/circle-a", "links.broken", "circle"),
        ("/deeper/1", "links.broken", "more than 5 times"),
        ("/to-script", "links.broken", "no web page"),
        ("/very-busy", "links.unsure", "HTTP 429"),
        ("/slow", "links.unsure", "no answer in"),
        ("/drip", "links.unsure", "no answer in"),
        ("/moved", "links.moved", "moved for good"),
    ],
)
def test_each_kind_of_trouble_has_its_name(site: Site, path: str, rule: str, said: str) -> None:
    manners = Manners(seconds=0.4, url_seconds=3.0, pause=0.01, retries=1)

    check = checked(link_to(site, path), manners=manners)

    assert rules(check) == [rule]
    assert said in check.remarks[0].message
    assert (check.remarks[0].line, check.remarks[0].column) == (1, 17)


@pytest.mark.parametrize("path", ["/found", "/no-head", "/busy", "/flaky", "/huge"])
def test_what_answers_in_the_end_is_fine(site: Site, path: str) -> None:
    check = checked(link_to(site, path))

    assert check.status == "passed"
    assert check.remarks == ()


def test_a_page_that_moved_for_good_is_told_with_its_new_place(site: Site) -> None:
    check = checked(link_to(site, "/moved"))

    assert check.remarks[0].suggestion == f"{site.url}/ok"


def test_a_refused_connection_is_a_broken_link_while_others_answer(site: Site) -> None:
    check = checked(f"See <http://127.0.0.1:1/> and <{site.url}/ok>.")

    assert rules(check) == ["links.broken"]
    assert "'http://127.0.0.1:1/' cannot be reached" in check.remarks[0].message
    assert check.status == "failed"


def test_private_hosts_are_not_asked_unless_allowed(site: Site) -> None:
    port = site.url.rsplit(":", 1)[1]
    text = f"{link_to(site, '/ok')}\n\nAlso <http://localhost:{port}/ok>."

    check = checked(text, private=False)

    assert rules(check) == ["links.private", "links.private"]
    assert "was not asked" in check.remarks[0].message
    assert (check.status, check.confidence) == ("blocked", 0.0)
    assert not site.asked


def test_a_redirect_cannot_lead_inside(site: Site) -> None:
    async def run() -> Check:
        door = Door(allowed_hosts=frozenset({"127.0.0.1"}))
        return await LinkChecker(door=door, manners=QUICK).check(
            draft_of(link_to(site, "/inside"))
        )

    check = anyio.run(run)

    assert rules(check) == ["links.private"]
    assert "169.254.1.1" in check.remarks[0].message


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1",
     "0.0.0.0", "64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1%eth0", "224.0.0.1",
     "100.64.0.1", "nonsense"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1"])
def test_public_addresses_are_known(address: str) -> None:
    assert is_public(address)


def test_ten_thousand_links_to_one_page_ask_once(site: Site) -> None:
    text = "\n".join(f"- [page]({site.url}/ok#{index})" for index in range(10_000))

    started = time.process_time()
    check = checked(text)

    assert site.asked == {"GET /ok": 1}
    assert check.status == "passed"
    assert time.process_time() - started < 20


def test_a_host_that_does_not_answer_is_not_asked_for_ever(site: Site) -> None:
    text = "\n".join(f"- <{site.url}/slow/{index}>" for index in range(2_000))
    manners = Manners(seconds=0.2, url_seconds=1.0, retries=0, patience=3)

    check = checked(text, manners=manners)

    assert sum(site.asked.values()) <= 5
    assert len(check.remarks) == 2_000
    assert check.status == "blocked"


def test_time_for_all_links_is_bounded_and_the_rest_is_told(site: Site) -> None:
    text = f"{link_to(site, '/ok')}\n\n{link_to(site, '/slow')}"
    manners = Manners(seconds=30.0, url_seconds=30.0, all_seconds=0.5)

    check = checked(text, manners=manners)

    assert check.status == "blocked"
    assert not check.whole
    assert "2 links: 1 could not be checked" in check.notes
    assert "was not checked: all links together had 0.5 s" in check.remarks[0].message


def test_a_host_is_not_asked_by_many_at_once(site: Site) -> None:
    text = "\n".join(f"- <{site.url}/page/{index}>" for index in range(200))

    check = checked(text)

    assert check.remarks == ()
    assert site.most_at_once <= QUICK.at_once_per_host


def test_offline_says_what_was_not_asked() -> None:
    async def run() -> Check:
        return await LinkChecker(offline=True).check(
            draft_of("# Top\n\n<https://a.test/> [t](#top)")
        )

    check = anyio.run(run)

    assert check.status == "passed"
    assert check.confidence == pytest.approx(0.49)
    assert rules(check) == ["links.unsure"]


def _files(folder: Path) -> Callable[[str], Check]:
    def check(text: str) -> Check:
        draft = folder / "docs" / "draft.md"
        draft.write_text(text, "utf-8")
        checker = LinkChecker(root=folder, offline=True)
        return anyio.run(checker.check, read_draft(draft))

    return check


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], Check]:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "other.md").write_text("# First `code` part\n\n## Twice\n\n## Twice\n", "utf-8")
    (docs / "with space.md").write_text("x", "utf-8")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    return _files(tmp_path)


@pytest.mark.parametrize(
    "target",
    ["other.md", "other.md#first-code-part", "other.md#twice-1", "#here", "../image.png",
     "/docs/other.md", "<with space.md>", "with%20space.md", "mailto:a@b.example",
     "other.md?x=1"],
)  # fmt: skip
def test_local_targets_that_are_there_are_fine(
    files: Callable[[str], Check], target: str
) -> None:
    check = files(f"# Here\n\n[a]({target})")

    assert check.remarks == ()


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("nothing.md", "links.broken"),
        ("other.md#third", "links.broken"),
        ("other.md#Twice", "links.moved"),
        ("#there", "links.broken"),
        ("../../outside.md", "links.refused"),
        ("/../../etc/passwd", "links.refused"),
        ("javascript:alert(1)", "links.broken"),
        ("mailto:nobody", "links.broken"),
        ("a%00b", "links.broken"),
        ("x" * 3_000, "links.broken"),
        ("<http://[broken>", "links.unsure"),
    ],
)
def test_local_targets_that_are_not_there_are_named(
    files: Callable[[str], Check], target: str, rule: str
) -> None:
    check = files(f"# Here\n\n[a]({target})")

    assert rules(check) == [rule]


def test_the_key_changes_when_a_target_does(tmp_path: Path) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text("[a](b.md)", "utf-8")
    checker = LinkChecker(offline=True)
    before = checker.cache_key(read_draft(draft))

    (tmp_path / "b.md").write_text("now", "utf-8")

    assert checker.cache_key(read_draft(draft)) != before
