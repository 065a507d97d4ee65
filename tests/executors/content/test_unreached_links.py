"""What one link, one host or the network does wrong ends no check and fails no draft."""

import socket
from pathlib import Path
from time import monotonic
from typing import Any, Final

import anyio
import pytest

from agent_run.executors.content.addresses import Door
from agent_run.executors.content.drafts import draft_of, read_draft
from agent_run.executors.content.fetching import Manners
from agent_run.executors.content.links import LinkChecker
from agent_run.executors.content.remarks import Check
from tests.executors.content.server import Site

QUICK: Final = Manners(seconds=1.0, url_seconds=5.0, all_seconds=60.0, pause=0.01)
ANYWHERE: Final = Door(allow_private=True)


def checked(text: str, *, door: Door = ANYWHERE, seconds: float | None = None) -> Check:
    async def run() -> Check:
        checker = LinkChecker(door=door, manners=QUICK)
        return await checker.check(draft_of(text), seconds=seconds)

    return anyio.run(run)


def rules(check: Check) -> list[str]:
    return [remark.rule for remark in check.remarks]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:99999/", "names the port 99999"),
        ("http://127.0.0.1:0/", "names the port 0"),
        ("http://xn--/", "is not a URL"),
        ("http://xn--a/", "is not a URL"),
        ("http://[broken#part", "cannot be reached"),
    ],
)
def test_a_link_that_cannot_be_asked_for_is_a_remark_beside_the_others(
    site: Site, url: str, said: str
) -> None:
    check = checked(f"[a](<{url}>) [b]({site.url}/missing) [c]({site.url}/ok)")

    assert check.status == "failed"
    assert "links.broken" in rules(check)
    assert any(f"{site.url}/missing" in one.message for one in check.remarks)
    assert said in check.remarks[0].message


@pytest.mark.parametrize("path", ["/to-port", "/to-name"])
def test_a_redirect_to_what_cannot_be_asked_for_is_a_broken_link(site: Site, path: str) -> None:
    check = checked(f"[a]({site.url}{path}) [b]({site.url}/ok)")

    assert rules(check) == ["links.broken"]
    assert "redirects to" in check.remarks[0].message


def test_the_time_there_is_ends_the_check_and_what_is_broken_is_told(
    site: Site, tmp_path: Path
) -> None:
    links = "".join(f"[{number}]({site.url}/slow/{number}) " for number in range(8))
    draft = tmp_path / "draft.md"
    draft.write_text(f"{links}[gone](nope.md)", "utf-8")
    checker = LinkChecker(door=ANYWHERE, manners=Manners())

    async def run() -> Check:
        return await checker.check(read_draft(draft), seconds=1.0)

    started = monotonic()
    check = anyio.run(run)

    assert monotonic() - started < 10
    assert check.status == "failed"
    assert not check.whole
    assert "9 links: 1 broken, 8 could not be checked; 1:" in check.notes
    assert "'nope.md' is not there" in check.notes
    assert sum("was not checked" in one.message for one in check.remarks) == 8


def test_without_any_answer_nothing_is_broken_and_a_person_looks() -> None:
    check = checked("See <http://127.0.0.1:1/> and <http://localhost:1/>.")

    assert rules(check) == ["links.unsure", "links.unsure"]
    assert "it may be the network here" in check.remarks[0].message
    assert (check.status, check.confidence, check.whole) == ("blocked", 0.0, False)
    assert "2 could not be checked; 1:6 'http://127.0.0.1:1/' cannot be reached" in check.notes


@pytest.mark.parametrize(
    ("code", "rule"),
    [(socket.EAI_AGAIN, "links.unsure"), (socket.EAI_NONAME, "links.broken")],
)
def test_a_name_that_nobody_could_look_up_is_not_one_that_is_not_there(
    site: Site, monkeypatch: pytest.MonkeyPatch, code: int, rule: str
) -> None:
    real = anyio.getaddrinfo

    async def lookup(host: str, port: int, **more: Any) -> Any:
        if host == "127.0.0.1":
            return await real(host, port, **more)
        raise socket.gaierror(code, "said by the test")

    monkeypatch.setattr(anyio, "getaddrinfo", lookup)

    check = checked(f"<http://no.example/> <{site.url}/ok>")

    assert rules(check) == [rule]


def test_an_answer_from_an_allowed_private_host_does_not_prove_the_network(site: Site) -> None:
    door = Door(allowed_hosts=frozenset({"127.0.0.1", "localhost"}))

    check = checked(f"<{site.url}/ok> <http://localhost:1/>", door=door)

    assert rules(check) == ["links.unsure"]


def test_a_certificate_that_is_not_trusted_here_is_no_proof(site: Site) -> None:
    safe = site.url.replace("http:", "https:")

    check = checked(f"<{safe}/ok> <{site.url}/ok>")

    assert rules(check) == ["links.unsure"]


def test_some_links_to_private_hosts_lower_the_confidence(site: Site) -> None:
    port = site.url.rsplit(":", 1)[1]
    door = Door(allowed_hosts=frozenset({"127.0.0.1"}))

    check = checked(f"<{site.url}/ok> <http://localhost:{port}/ok>", door=door)

    assert rules(check) == ["links.private"]
    assert check.status == "passed"
    assert check.confidence == pytest.approx(0.49)


def test_nothing_is_counted_that_is_not_there(site: Site) -> None:
    assert checked(f"<{site.url}/ok>").notes == "1 link: none broken"
    assert checked(f"<{site.url}/ok> <{site.url}/found>").notes == "2 links: none broken"
    assert checked("no word of a page").notes == "no links"


def test_the_key_of_a_door_is_the_same_in_every_process() -> None:
    hosts = [f"host-{number}.example" for number in range(20)]
    draft = draft_of("<https://a.example/>")

    keys = {
        LinkChecker(door=Door(allowed_hosts=frozenset(order))).cache_key(draft)
        for order in (hosts, hosts[::-1], [*hosts[10:], *hosts[:10]])
    }

    assert len(keys) == 1
