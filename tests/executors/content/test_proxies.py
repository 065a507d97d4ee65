"""A proxy is used where its owner configured one, and never shows a password."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import anyio
import pytest

from agent_run.errors import InvalidDocument
from agent_run.executors.content.addresses import Door
from agent_run.executors.content.drafts import draft_of
from agent_run.executors.content.fetching import Manners
from agent_run.executors.content.links import LinkChecker
from agent_run.executors.content.proxies import Proxies, proxies_from
from agent_run.executors.content.remarks import Check
from tests.executors.content.server import Site

QUICK: Final = Manners(seconds=2.0, url_seconds=5.0, pause=0.01, retries=0)


@dataclass(slots=True)
class Between:
    """A proxy that answers by itself, and what it was asked."""

    url: str
    asked: list[str] = field(default_factory=list)
    authorized: list[str] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    between: Between

    def do_HEAD(self) -> None:
        self.between.asked.append(self.path)
        self.between.authorized.append(self.headers.get("Proxy-Authorization", ""))
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()

    def do_CONNECT(self) -> None:
        self.between.asked.append(self.path)
        self.send_error(403)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def between() -> Iterator[Between]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    running = Between(f"http://127.0.0.1:{server.server_address[1]}")
    server.RequestHandlerClass = type("_Bound", (_Handler,), {"between": running})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    server.shutdown()
    server.server_close()
    thread.join()


def checked(text: str, proxies: Proxies, *, door: Door | None = None) -> Check:
    checker = LinkChecker(door=door or Door(), manners=QUICK, proxies=proxies)
    return anyio.run(checker.check, draft_of(text))


def test_pages_are_asked_for_through_the_proxy(between: Between) -> None:
    proxies = proxies_from(http=between.url)

    check = checked("<http://page.invalid/a> <http://page.invalid/missing>", proxies)

    assert sorted(set(between.asked)) == [
        "http://page.invalid/a",
        "http://page.invalid/missing",
    ]
    assert [one.rule for one in check.remarks] == ["links.broken"]


def test_a_proxy_that_will_not_or_is_not_there_breaks_no_link(between: Between) -> None:
    will_not = checked("<https://page.invalid/>", proxies_from(https=between.url))
    not_there = checked("<http://page.invalid/>", proxies_from(http="http://127.0.0.1:1"))

    for check in (will_not, not_there):
        assert [one.rule for one in check.remarks] == ["links.unsure"]
        assert "the proxy" in check.remarks[0].message
        assert not check.whole


@pytest.mark.parametrize("target", ["http://10.0.0.1/", "http://localhost/", "http://[::1]/"])
def test_private_hosts_are_kept_from_the_proxy(between: Between, target: str) -> None:
    check = checked(f"<{target}>", proxies_from(http=between.url))

    assert [one.rule for one in check.remarks] == ["links.private"]
    assert between.asked == []


def test_hosts_that_bypass_the_proxy_are_asked_directly(between: Between, site: Site) -> None:
    proxies = proxies_from(http=between.url, bypass="other.example, 127.0.0.0/8")

    check = checked(f"<{site.url}/ok>", proxies, door=Door(allow_private=True))

    assert check.remarks == ()
    assert between.asked == []
    assert site.asked == {"HEAD /ok": 1}


def test_the_proxy_knows_its_user_and_nobody_else_does(between: Between) -> None:
    host = between.url.removeprefix("http://")
    proxies = proxies_from(http=f"http://ada:s%20ecret@{host}")

    checked("<http://page.invalid/>", proxies)

    assert between.authorized == ["Basic YWRhOnMgZWNyZXQ="]
    assert "ecret" not in repr(proxies)


@pytest.mark.parametrize(
    ("host", "port", "is_direct"),
    [
        ("a.example", 80, True),
        ("b.a.example", 80, True),
        ("nota.example", 80, False),
        ("only.test", 8080, True),
        ("only.test", 80, False),
        ("10.1.2.3", 80, True),
        ("11.1.2.3", 80, False),
        ("::1", 80, True),
        ("below.dot.test", 80, True),
    ],
)
def test_what_bypasses_a_proxy_is_told_by_name_port_and_network(
    host: str, port: int, *, is_direct: bool
) -> None:
    bypass = "a.example,only.test:8080 10.0.0.0/8,::1,.dot.test"
    proxies = proxies_from(http="proxy.test:3128", bypass=bypass)

    assert (proxies.way_to("http", host, port) is None) is is_direct


def test_a_star_bypasses_every_proxy() -> None:
    assert proxies_from(http="p:1", bypass="*").way_to("http", "a.example", 80) is None


@pytest.mark.parametrize("address", ["socks5://u:secret@p:1", "http://", "http://u:secret@p:x"])
def test_a_proxy_of_another_kind_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(InvalidDocument, match="proxy") as caught:
        proxies_from(https=address)

    assert "secret" not in str(caught.value)


def test_a_proxy_that_cannot_be_used_is_a_reason_to_ask_nobody() -> None:
    check = checked("<http://page.invalid/>", Proxies(fault="proxy 'socks5://p' is none"))

    assert check.status == "blocked"
    assert "was not asked: proxy 'socks5://p' is none" in check.remarks[0].message
