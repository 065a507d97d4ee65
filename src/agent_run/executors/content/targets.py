"""What links of a draft point at on this machine: files below a root, and their headings.

Only regular files below the root are opened, so that a draft cannot make the checker read a
device or learn about the rest of the disk.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from agent_run.errors import InvalidDocument
from agent_run.executors.content.drafts import Draft, read_draft
from agent_run.executors.content.fetching import Answer

_WITH_ANCHORS: Final = frozenset({".md", ".markdown", ".mdx", ".html", ".htm", ".xhtml"})
_INDEXES: Final = ("index.md", "README.md", "index.html")
_ALWAYS_THERE: Final = frozenset({"", "top"})
_FINE: Final = Answer("fine", "is there")


@dataclass(slots=True)
class Targets:
    """Looks up local targets of one draft; what was read once is remembered."""

    draft: Draft
    root: Path | None
    """Links may not lead out of it. `None` means the folder of the draft."""
    _anchors: dict[Path, frozenset[str] | str] = field(default_factory=dict)

    def look_up(self, target: str) -> Answer:
        """Return whether the file and the heading that `target` names are there."""
        try:
            parts = urlsplit(target)
            path, fragment = unquote(parts.path), unquote(parts.fragment)
        except ValueError as error:
            return Answer("broken", f"is not a link: {error}")
        if not path:
            return _anchored(self.draft.prose.anchors, fragment, self.draft.name)
        if self.draft.path is None:
            return Answer("unsure", "is relative, but the draft is no file")
        return self._file(path, fragment, self.draft.path)

    def _file(self, path: str, fragment: str, draft: Path) -> Answer:
        root = (self.root or draft.parent).resolve()
        try:
            found = root / path.lstrip("/") if path.startswith("/") else draft.parent / path
            found = found.resolve()
            if not found.is_relative_to(root):
                return Answer("refused", f"leads out of {root.name!r}")
            if not found.exists():
                return Answer("broken", "is not there")
            if found.is_dir():
                return self._folder(found, fragment)
        except (OSError, ValueError, RuntimeError) as error:
            return Answer("broken", f"cannot be looked up: {error}")
        return self._heading(found, fragment)

    def _folder(self, folder: Path, fragment: str) -> Answer:
        for name in _INDEXES:
            if (folder / name).is_file():
                return self._heading(folder / name, fragment)
        return Answer("broken", "is a folder, which has no headings") if fragment else _FINE

    def _heading(self, file: Path, fragment: str) -> Answer:
        if not file.is_file():
            return Answer("broken", "is not a regular file")
        if not fragment or file.suffix.lower() not in _WITH_ANCHORS:
            return _FINE
        if file not in self._anchors:
            try:
                self._anchors[file] = read_draft(file).prose.anchors
            except InvalidDocument as error:
                self._anchors[file] = str(error)
        anchors = self._anchors[file]
        if isinstance(anchors, str):
            return Answer("unsure", f"its headings cannot be read: {anchors}")
        return _anchored(anchors, fragment, file.name)


def _anchored(anchors: frozenset[str], fragment: str, name: str) -> Answer:
    if fragment in _ALWAYS_THERE or fragment in anchors:
        return _FINE
    if fragment.lower() in anchors:
        return Answer("moved", "differs in capitals from its heading", f"#{fragment.lower()}")
    return Answer("broken", f"{name!r} has no heading or anchor {fragment[:200]!r}")
