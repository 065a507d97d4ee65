"""Counting tokens before anybody is asked.

A counter's name stands beside every number, because models do not count alike: for the same
text Claude counts up to twice as many tokens as the counter of GPT models.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from agent_run.errors import ModelMissing
from agent_run.ports.meter import Meter

_VOCABULARY: Final = "o200k_base"


@dataclass(frozen=True, slots=True)
class BytesMeter:
    """Counts bytes: no token is shorter than one, so it never counts too few."""

    name: str = "utf8-bytes"

    def count(self, text: str) -> int:
        """Return the number of bytes."""
        return len(text.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class O200kMeter:
    """Counts as the models of OpenAI do; the vocabulary comes with the library."""

    tokenizer: Any
    name: str = "o200k"

    def count(self, text: str) -> int:
        """Return the number of tokens; names of special tokens are plain text."""
        return len(self.tokenizer.encode_ordinary(text))


@lru_cache(maxsize=1)
def open_meter() -> Meter:
    """Return the exact counter.

    Raises:
        ModelMissing: The library `splintr-rs` is not installed.
    """
    try:
        splintr = import_module("splintr")
    except ImportError as error:
        msg = "counting tokens needs the library 'splintr-rs', which is not installed"
        raise ModelMissing(msg) from error
    return O200kMeter(splintr.Tokenizer.from_pretrained(_VOCABULARY))
