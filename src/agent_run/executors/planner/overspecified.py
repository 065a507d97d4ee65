"""A manifest says what and how far, never how: code in it is refused.

A planner that writes the patch takes the executor's work away without having its tools.
"""

import re
from typing import Final

_SURE: Final = (
    (re.compile(r"```|~~~"), "a block of code"),
    (re.compile(r"^(diff --git |@@ .*@@|\+\+\+ |--- [ab]/|Index: )", re.MULTILINE), "a diff"),
    (re.compile(r"<<<<<<<|>>>>>>>"), "a patch"),
    (re.compile(r"^#!", re.MULTILINE), "a script"),
)
_LIKE_CODE: Final = re.compile(
    r"^\s*(def \w+\(|class \w+.*:|import \w+|from \w+ import |return\b.*|for .*:$|while .*:$|"
    r"if .*:$|else:|try:|except.*:|function \w*\(|(const|let|var) \w+ =|public \w+|\w+ = .+;|"
    r".*[;{]\s*$|}\s*$|#include|async def )"
)
_ENOUGH_LINES: Final = 2


def code_in(text: str) -> str:
    """Return what kind of code `text` holds; the empty string if it holds none."""
    for pattern, name in _SURE:
        if pattern.search(text):
            return name
    lines = [line for line in text.splitlines() if line.strip()]
    like_code = sum(bool(_LIKE_CODE.match(line)) for line in lines)
    return "lines of code" if like_code >= _ENOUGH_LINES else ""
