"""What the pages of one call say: whom it asked, what came of it, how many tokens it took.

A call is reserved on one page and settled on another. A question to a model is known by the
shape of its key, for its purpose is only the name of the model; a tool's purpose says so.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Operation: TypeAlias = Literal["chat", "execute_tool"]

_TRY: Final = re.compile(r"\d+:[0-9a-f]{16}", re.ASCII)
"""How the key of a question ends: the number of the try, and a hash of the question."""
_CHAT: Final = "chat "
_TOOL: Final = "tool "


class Usage(NamedTuple):
    """Tokens of one answer, by whoever counted them."""

    tokens_in: int
    tokens_out: int


def called(key: str, purpose: str) -> tuple[Operation, str]:
    """Return what kind of call it is, and the name of the model or the tool."""
    if purpose.startswith(_CHAT) and purpose != _CHAT:
        return "chat", purpose.removeprefix(_CHAT)
    before, middle, end = key.rpartition(f":{purpose}:")
    if purpose and before and middle and _TRY.fullmatch(end):
        return "chat", purpose
    return "execute_tool", purpose.removeprefix(_TOOL) or key


def fault_of(result: object) -> str | None:
    """Return in one word why a settled call gave nothing to use; None if it did."""
    if not isinstance(result, Mapping):
        return None
    if result.get("unusable"):
        return "unusable"
    return "failed" if result.get("failed") else None


def usage_of(result: object) -> Usage | None:
    """Return what the answer of a model took; None if nobody counted, or it is none."""
    answer = result.get("answer") if isinstance(result, Mapping) else None
    usage = answer.get("usage") if isinstance(answer, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    taken, given = usage.get("tokens_in", 0), usage.get("tokens_out", 0)
    if not isinstance(taken, int) or not isinstance(given, int) or not taken + given:
        return None
    return Usage(taken, given)


def answered_by(result: object) -> str | None:
    """Return the model that answered, as its provider names it; None if nobody said."""
    answer: Any = result.get("answer") if isinstance(result, Mapping) else None
    model = answer.get("model") if isinstance(answer, Mapping) else None
    return model if isinstance(model, str) and model else None
