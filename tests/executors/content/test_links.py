"""Links against a real server on this machine, which behaves as badly as servers do."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import anyio
import pytest

from agent_run.executors.content.addresses import Door, is_public
from agent_run.executors.content.drafts import draft_of, read_draft
from agent_run.executors.content.fetching import Manners
from agent_run.executors.content.links import LinkChecker
from agent_run.executors.content.remarks import Check

QUICK: Final = Manners(seconds=1.0, url_seconds=5.0, all_seconds=60.0, pause=0.01)


@dataclass(slots=True)
class Site:
    """A server and what it was asked."""

    url: str
    asked: Counter[str] = field(default_factory=Counter)
    at_once: int = 0
    most_at_once: int = 0
    quiet: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


MOVED: Final = {
    "/moved": (301, "/ok"),
    "/found": (302, "/ok"),
    "/circle-a": (302, "/circle-b"),
    "/circle-b": (302, "/circle-a"),
    "/to-script": (302, "javascript:alert(1)"),
    "/inside": (302, "http://169.254.1.1/secret"),
}
PLAIN: Final = {"/missing": 404, "/gone": 410, "/private": 401, "/wrong": 500}


def _reply(site: Site, handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, str]]:
    path, head = handler.path, handler.command == "HEAD"
    answer: tuple[int, dict[str, str]] = PLAIN.get(path, 200), {}
    if path in MOVED:
        answer = MOVED[path][0], {"Location": MOVED[path][1]}
    elif path.startswith("/deeper/"):
        answer = 302, {"Location": f"/deeper/{int(path.rsplit('/', 1)[1]) + 1}"}
    elif path == "/no-head" and head:
        answer = 405, {}
    elif path == "/busy" and site.asked["HEAD /busy"] < 2:
        answer = 429, {"Retry-After": "0"}
    elif path == "/very-busy":
        answer = 429, {"Retry-After": "3600"}
    elif path == "/flaky" and site.asked["HEAD /flaky"] < 3:
        answer = 503, {}
    return answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _serve(self) -> None:
        with self.site.lock:
            self.site.asked[f"{self.command} {self.path}"] += 1
            self.site.at_once += 1
            self.site.most_at_once = max(self.site.most_at_once, self.site.at_once)
        try:
            self._answer()
        except OSError:
            self.close_connection = True
        finally:
            with self.site.lock:
                self.site.at_once -= 1

    def _answer(self) -> None:
        if self.path.startswith("/slow"):
            self.site.quiet.wait(30)
            return
        if self.path == "/drip":
            self._drip()
            return
        status, headers = _reply(self.site, self)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        huge = self.path == "/huge"
        self.send_header("Content-Length", str(10**12 if huge else 0))
        self.end_headers()
        if huge and self.command == "GET":
            for _ in range(100_000):
                self.wfile.write(b"x" * 65_536)

    def _drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.site.quiet.wait(0.1):
            self.wfile.write(b"X-Wait: yes\r\n")
            self.wfile.flush()


@pytest.fixture
def site() -> Iterator[Site]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    running = Site(f"http://127.0.0.1:{server.server_address[1]}")
    server.RequestHandlerClass = type("_Bound", (_Handler,), {"site": running})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.quiet.set()
    server.shutdown()
    server.server_close()
    thread.join()


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


def test_a_refused_connection_is_a_broken_link(site: Site) -> None:
    check = checked("See <http://127.0.0.1:1/>.")

    assert rules(check) == ["links.broken"]
    assert "cannot be reached" in check.remarks[0].message


def test_private_addresses_are_refused_unless_allowed(site: Site) -> None:
    port = site.url.rsplit(":", 1)[1]
    text = f"{link_to(site, '/ok')}\n\nAlso <http://localhost:{port}/ok>."

    check = checked(text, private=False)

    assert rules(check) == ["links.refused", "links.refused"]
    assert not site.asked


def test_a_redirect_cannot_lead_inside(site: Site) -> None:
    async def run() -> Check:
        door = Door(allowed_hosts=frozenset({"127.0.0.1"}))
        return await LinkChecker(door=door, manners=QUICK).check(
            draft_of(link_to(site, "/inside"))
        )

    check = anyio.run(run)

    assert rules(check) == ["links.refused"]
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

    assert site.asked == {"HEAD /ok": 1}
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

    assert check.status == "passed"
    assert check.confidence == pytest.approx(0.49)
    assert "all links together" in check.remarks[0].message


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
