"""How well the compliance classifier agrees with people, and when it should ask one.

Usage: python benchmarks/compliance.py LABELLED.jsonl [--folds 10] [--lexicon FILE]

Every line is judged by a model that has not seen it. The curve says which share of the lines
is decided without a person at each `min_confidence`, and how often that decision is right.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_run.executors.content.classifier import (
    Example,
    folds,
    read_examples,
    starter_model,
    train,
)
from agent_run.executors.content.drafts import draft_of
from agent_run.executors.content.lexicon import (
    Lexicon,
    PhraseIndex,
    load_lexicon,
    starter_lexicon,
)

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a person said of one line, and the probability the model gave."""

    label: bool
    probability: float


def main(arguments: Sequence[str]) -> int:
    """Cross-validate on the file that `arguments` name and print the numbers."""
    parser = argparse.ArgumentParser(description="Measure the compliance classifier.")
    parser.add_argument("examples", type=Path)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--lexicon", type=Path)
    asked = parser.parse_args(arguments)
    lines = asked.examples.read_text("utf-8").splitlines()
    examples = list(dict.fromkeys(read_examples(lines, asked.examples.name)))
    started = time.process_time()
    judged = cross_validated(examples, asked.folds)
    seconds = time.process_time() - started
    lexicon = load_lexicon(asked.lexicon) if asked.lexicon else starter_lexicon()
    rows = [
        {"who": f"trained, {asked.folds} folds", **scores(judged)},
        {"who": "model as shipped", **scores(_by_starter_model(examples))},
        {"who": "lexicon alone", **scores(_by_lexicon(examples, lexicon))},
    ]
    curve = [at_confidence(judged, threshold) for threshold in THRESHOLDS]
    for row in (*rows, *curve):
        print(json.dumps(row))
    print(json.dumps({"lines": len(examples), "cpu_seconds": round(seconds, 2)}))
    _table(rows)
    _table(curve)
    return 0


def cross_validated(examples: Sequence[Example], count: int) -> list[Judged]:
    """Return every example as judged by a model that has not seen it."""
    judged: list[Judged] = []
    for kept, held in folds(examples, count):
        model = train(kept)
        judged.extend(Judged(one.label, model.probability(one.text)) for one in held)
    return judged


def scores(judged: Sequence[Judged]) -> dict[str, float]:
    """Return precision, recall, accuracy and how honest the probabilities are."""
    hits = sum(one.label and one.probability >= 0.5 for one in judged)
    called = sum(one.probability >= 0.5 for one in judged)
    wanted = sum(one.label for one in judged)
    right = sum(one.label == (one.probability >= 0.5) for one in judged)
    return {
        "precision": round(hits / called, 3) if called else 0.0,
        "recall": round(hits / wanted, 3) if wanted else 0.0,
        "accuracy": round(right / len(judged), 3),
        "brier": round(
            sum((one.label - one.probability) ** 2 for one in judged) / len(judged), 4
        ),
        "calibration_error": round(_calibration_error(judged), 4),
    }


def at_confidence(judged: Sequence[Judged], threshold: float) -> dict[str, float]:
    """Return the share decided at `threshold`, and how often people agree with it."""
    sure = [one for one in judged if max(one.probability, 1 - one.probability) >= threshold]
    agreed = sum(one.label == (one.probability >= 0.5) for one in sure)
    return {
        "min_confidence": threshold,
        "share_decided": round(len(sure) / len(judged), 3),
        "agreement": round(agreed / len(sure), 3) if sure else 0.0,
        "wrong": len(sure) - agreed,
        "to_a_person": len(judged) - len(sure),
    }


def _brier(judged: Sequence[Judged]) -> float:
    return sum((one.label - one.probability) ** 2 for one in judged) / len(judged)


def _calibration_error(judged: Sequence[Judged]) -> float:
    bins: dict[int, list[Judged]] = {}
    for one in judged:
        bins.setdefault(min(int(one.probability * 10), 9), []).append(one)
    return sum(
        abs(sum(one.label for one in part) - sum(one.probability for one in part))
        for part in bins.values()
    ) / len(judged)


def _by_starter_model(examples: Sequence[Example]) -> list[Judged]:
    model = starter_model()
    return [Judged(one.label, model.probability(one.text)) for one in examples]


def _by_lexicon(examples: Sequence[Example], lexicon: Lexicon) -> list[Judged]:
    index = PhraseIndex()
    for entry in lexicon.forbidden:
        index.add(entry.id, entry.phrases)
    return [
        Judged(one.label, float(any(index.find(draft_of(one.text, "line.txt").prose))))
        for one in examples
    ]


def _table(rows: Sequence[dict[str, float]] | Sequence[dict[str, object]]) -> None:
    names = list(rows[0])
    print("\n| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(str(row[name]) for name in names) + " |")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
