"""A small text classifier that can be trained in a second and read in a minute.

Naive Bayes over words, pairs of words and shapes, in plain Python. Its raw score is far too
sure of itself, so that a curve learned on examples it had not seen turns the score into a
probability.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from agent_run.errors import InvalidDocument
from agent_run.executors.content.calibration import Curve, fitted
from agent_run.executors.content.remarks import digest_of
from agent_run.executors.content.sameness import words_of

FORMAT: Final = "agent-run naive-bayes 1"
FOLDS: Final = 5
_SMOOTHING: Final = 0.5
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_LONGEST_TEXT: Final = 4_000
_LARGEST_FILE: Final = 50_000_000
_LEAST_PER_SIDE: Final = 5
_LEAST_SHARE: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Example:
    """A text that a person has judged."""

    text: str
    label: bool
    """True means that a person objected to it."""


@dataclass(frozen=True, slots=True)
class Classifier:
    """Weights per feature, and the curve that makes a probability of their sum."""

    bias: float
    weights: dict[str, float]
    unseen: float
    """What a feature that was never seen adds."""
    curve: Curve
    share: float = 0.5
    """The share of the examples that people objected to."""

    def probability(self, text: str, base_rate: float | None = None) -> float:
        """Return how likely it is that a person would object to `text`.

        `base_rate` is the share that people object to where `text` comes from; `None` means
        the share among the examples.
        """
        score = self.curve.slope * self.score(text) + self.curve.offset
        if base_rate is not None:
            score += _logit(base_rate) - _logit(self.share)
        return Curve(1.0, 0.0).probability(score)

    def predict(self, text: str) -> tuple[bool, float]:
        """Return whether a person would object to `text`, and how sure that is."""
        probability = self.probability(text)
        return probability >= 0.5, max(probability, 1 - probability)  # noqa: PLR2004

    def score(self, text: str) -> float:
        """Return the raw sum of evidence, above 0 for an objection."""
        found = features(text)
        return self.bias + sum(self.weights.get(one, self.unseen) for one in found)

    @property
    def digest(self) -> str:
        """A digest that changes when the model does."""
        return digest_of(self.dump())

    def dump(self) -> dict[str, Any]:
        """Return the model as JSON can hold it."""
        return {
            "format": FORMAT,
            "bias": self.bias,
            "unseen": self.unseen,
            "curve": [self.curve.slope, self.curve.offset],
            "share": self.share,
            "weights": self.weights,
        }

    def save(self, path: Path) -> None:
        """Write the model to `path`."""
        path.write_text(json.dumps(self.dump(), sort_keys=True) + "\n", "utf-8")


def features(text: str) -> frozenset[str]:
    """Return what the classifier sees of `text`: words, pairs, and a few shapes."""
    words = [_shape(word.same) for word in words_of(text[:_LONGEST_TEXT])]
    pairs = (f"{one} {other}" for one, other in zip(["<", *words], [*words, ">"], strict=True))
    shapes = {f"length {min(len(words), 12) // 2}"}
    if "!" in text:
        shapes.add("exclaims")
    if "?" in text:
        shapes.add("asks")
    if text.isupper():
        shapes.add("shouts")
    return frozenset({*words, *pairs, *shapes})


def train(examples: Iterable[Example]) -> Classifier:
    """Return a classifier learned from `examples`, calibrated on what it had not seen.

    Raises:
        InvalidDocument: There are too few examples of one side.
    """
    known = list(dict.fromkeys(examples))
    positive = sum(one.label for one in known)
    if min(positive, len(known) - positive) < _LEAST_PER_SIDE:
        msg = (
            f"{positive} of {len(known)} examples are objected to, expected at least"
            f" {_LEAST_PER_SIDE} of each side"
        )
        raise InvalidDocument(msg)
    scores: list[tuple[float, bool]] = []
    for kept, held in folds(known, FOLDS):
        model = _learned(kept)
        scores.extend((model.score(one.text), one.label) for one in held)
    return _learned(known, fitted(scores))


def folds(examples: Sequence[Example], count: int) -> list[tuple[list[Example], list[Example]]]:
    """Return `count` splits into what is learned from and what is held back.

    The split depends on the texts alone, so that it is the same everywhere and always.
    """
    mixed = sorted(examples, key=lambda one: (one.label, digest_of(one.text)))
    return [
        (
            [one for at, one in enumerate(mixed) if at % count != fold],
            [one for at, one in enumerate(mixed) if at % count == fold],
        )
        for fold in range(count)
    ]


def load_model(path: Path) -> Classifier:
    """Return the model that `Classifier.save` wrote to `path`.

    Raises:
        InvalidDocument: It is not such a file.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            msg = f"model {path.name!r} is larger than {_LARGEST_FILE / 1e6:.0f} MB"
            raise InvalidDocument(msg)
        return read_model(path.read_text("utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        msg = f"model {path.name!r} cannot be read: {error}"
        raise InvalidDocument(msg) from error


def read_model(text: str, name: str) -> Classifier:
    """Return the model that `text` spells.

    Raises:
        InvalidDocument: It is not a model of this format.
    """
    try:
        said = json.loads(text)
        if said["format"] != FORMAT:
            msg = f"model {name!r} has format {said['format']!r}, expected {FORMAT!r}"
            raise InvalidDocument(msg)
        slope, offset = (_finite(one) for one in said["curve"])
        weights = {str(key): _finite(value) for key, value in said["weights"].items()}
        bias, unseen, share = (_finite(said[key]) for key in ("bias", "unseen", "share"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"model {name!r} is not of format {FORMAT!r}: {error}"
        raise InvalidDocument(msg) from error
    return Classifier(bias, weights, unseen, Curve(slope, offset), share)


def starter_model() -> Classifier:
    """Return the model that comes with this package, learned from sentences of our own."""
    folder = resources.files("agent_run.executors.content").joinpath("rules")
    return read_model(folder.joinpath("pressure.json").read_text("utf-8"), "pressure.json")


def read_examples(lines: Iterable[str], name: str) -> list[Example]:
    """Return the examples of a JSONL text: `text`, and `label` 0, 1, true or false.

    Raises:
        InvalidDocument: A line is not such an object; the first one is named.
    """
    examples: list[Example] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
            text, label = said["text"], said["label"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            msg = f"{name}:{number}: not an object with 'text' and 'label': {error}"
            raise InvalidDocument(msg) from error
        if not isinstance(text, str) or label not in (0, 1):
            msg = f"{name}:{number}: label {label!r} is not 0 or 1, or text is no text"
            raise InvalidDocument(msg)
        examples.append(Example(text, bool(label)))
    return examples


def _learned(examples: Sequence[Example], curve: Curve | None = None) -> Classifier:
    seen: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    sizes = Counter(one.label for one in examples)
    for one in examples:
        seen[one.label].update(features(one.text))
    weights = {
        name: round(_log_odds(seen[True][name], seen[False][name], sizes), 4)
        for name in sorted({*seen[True], *seen[False]})
    }
    bias = math.log((sizes[True] + 1) / (sizes[False] + 1))
    share = round(sizes[True] / len(examples), 4)
    return Classifier(bias, weights, 0.0, curve or Curve(1.0, 0.0), share)


def _log_odds(positive: int, negative: int, sizes: Counter[bool]) -> float:
    there = (positive + _SMOOTHING) / (sizes[True] + 2 * _SMOOTHING)
    here = (negative + _SMOOTHING) / (sizes[False] + 2 * _SMOOTHING)
    return math.log(there / here)


def _logit(share: float) -> float:
    kept = min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)
    return math.log(kept / (1 - kept))


def _shape(word: str) -> str:
    return "0" if _NUMBER.fullmatch(word) else word


def _finite(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
    ):
        msg = f"{value!r} is not a finite number"
        raise ValueError(msg)
    return float(str(value))
