"""A strict reader of our pages: what a browser would forgive, a test should not."""

import re
from html.parser import HTMLParser
from typing import Final

_VOID: Final = frozenset({"meta", "br", "hr", "img", "input", "link", "base", "source"})
_ALONE: Final = frozenset({"rect", "line", "polyline", "circle", "path"})
_RUNS_OR_FETCHES: Final = frozenset(
    {"script", "img", "iframe", "object", "embed", "link", "base", "form", "audio", "video"}
)
_POINTS: Final = ("aria-labelledby", "aria-describedby", "aria-controls", "for", "headers")


class PageReader(HTMLParser):
    """Reads one page, and keeps what is wrong with it in `faults`."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.words: list[str] = []
        self.headings: list[int] = []
        self._open: list[str] = []
        self._ids: list[str] = []
        self._wanted: list[str] = []
        self._named = 0
        self._pictures = 0
        self.feed(page)
        self.close()
        self._finish(page)

    @property
    def text(self) -> str:
        """All words that are shown."""
        return " ".join(" ".join(self.words).split())

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _ALONE:
            self.faults.append(f"<{tag}/> is not closed in HTML")
        self._look(tag, dict(attrs))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self._open.append(tag)
        self._look(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1:]}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    def _look(self, tag: str, attrs: dict[str, str | None]) -> None:
        self.faults += [
            f"<{tag} {name}>" for name in attrs if name.startswith("on") or name == "style"
        ]
        if tag in _RUNS_OR_FETCHES or {"src", "srcset", "action", "xlink:href"} & set(attrs):
            self.faults.append(f"<{tag}> runs or fetches something")
        if tag == "a" and not str(attrs.get("href")).startswith("#"):
            self.faults.append(f"<a> leads away to {attrs.get('href')!r}")
        if tag == "th" and attrs.get("scope") not in {"row", "col"}:
            self.faults.append("<th> without scope")
        self._note_names(tag, attrs)

    def _note_names(self, tag: str, attrs: dict[str, str | None]) -> None:
        if name := attrs.get("id"):
            self._ids.append(name)
        for key in _POINTS:
            self._wanted += (attrs.get(key) or "").split()
        if (target := attrs.get("href") or "").startswith("#"):
            self._wanted.append(target[1:])
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "svg" and attrs.get("aria-hidden") != "true":
            self._pictures += 1
        self._named += tag == "title" and self._open[-2:-1] == ["svg"]

    def _finish(self, page: str) -> None:
        if self._open:
            self.faults.append(f"left open: {self._open}")
        twice = {name for name in self._ids if self._ids.count(name) > 1}
        self.faults += [f"id {name!r} stands twice" for name in sorted(twice)]
        missing = set(self._wanted) - set(self._ids)
        self.faults += [f"nothing has the id {name!r}" for name in sorted(missing)]
        if self.headings[:1] != [1] or self.headings.count(1) != 1:
            self.faults.append(f"the one <h1> does not come first: {self.headings}")
        steps = zip(self.headings, self.headings[1:], strict=False)
        self.faults += [f"h{after} follows h{one}" for one, after in steps if after > one + 1]
        if self._pictures != self._named:
            self.faults.append(f"{self._pictures} pictures, {self._named} of them named")
        for wanted in ('<html lang="en">', "<!doctype html>", 'name="viewport"', "<main>"):
            if wanted not in page:
                self.faults.append(f"no {wanted}")
