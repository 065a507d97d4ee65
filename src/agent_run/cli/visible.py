"""Making text from strangers harmless to look at."""

from typing import Final

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ONE_BYTE: Final = 0xFF
_TWO_BYTES: Final = 0xFFFF


def visible(text: str) -> str:
    """Return `text` on one line, with everything that cannot be seen written as an escape.

    Control characters could move the cursor or colour what follows, overrides of direction
    could show words in another order, line ends could fake a line of our own.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code <= _ONE_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _TWO_BYTES else f"\\U{code:08x}"
