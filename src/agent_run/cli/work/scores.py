"""Scores as people and programs read them."""

from agent_run.cli.speech import Json
from agent_run.evals.scoring import Score

SCORE_HEAD = ("SCORE", "VALUE", "95 %", "COUNTED", "WHAT")


def score_cells(score: Score) -> tuple[str, ...]:
    """Return a score as a row below `SCORE_HEAD`."""
    value = "" if score.value is None else f"{score.value:.4g}"
    known = score.low is not None and score.high is not None
    interval = f"{score.low:.3g} to {score.high:.3g}" if known else "too few cases"
    return score.name, value, interval, str(score.counted), score.says


def score_json(score: Score) -> Json:
    """Return a score as an object."""
    return {
        "value": score.value,
        "interval": None if score.low is None else [score.low, score.high],
        "counted": score.counted,
        "better": score.better,
    }


def bar(done: int, of: int) -> str:
    """Return how far the work is, as a bar and in numbers."""
    return f"[{'█' * (done * 20 // of):<20}] {done}/{of}"
