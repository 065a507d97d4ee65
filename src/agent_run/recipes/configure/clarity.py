"""When has enough been said? A pure function over the notes decides, and says what lacks."""

from dataclasses import dataclass
from typing import Final

from agent_run.contract.notes import Notes


@dataclass(frozen=True, slots=True)
class Clarity:
    """What notes must be like before a plan is made from them."""

    least_percent: int = 70
    most_open: int = 0
    """How many questions may still be open."""
    required: tuple[str, ...] = ("requirements",)
    """Fields of the notes that may not be empty."""


@dataclass(frozen=True, slots=True)
class Pivot:
    """Whether to stop talking and plan; if not, why not."""

    ready: bool
    missing: tuple[str, ...] = ()


ENOUGH: Final = Clarity()


def pivot(notes: Notes, clarity: Clarity = ENOUGH) -> Pivot:
    """Return whether the notes are clear enough to plan from."""
    missing = [
        f"nothing is known of {field.replace('_', ' ')}"
        for field in clarity.required
        if not getattr(notes, field)
    ]
    if len(notes.open_questions) > clarity.most_open:
        missing.extend(notes.open_questions)
    if notes.clarity_percent < clarity.least_percent:
        missing.append(
            f"clarity is {notes.clarity_percent} %, wanted {clarity.least_percent} %"
        )
    return Pivot(not missing, tuple(missing))


def carried(before: Notes, after: Notes) -> Notes:
    """Return `after` with everything of `before` that may not be lost on the way.

    A listener that forgets an early requirement makes a plan without it, and nobody notices.
    """
    kept = {
        field: tuple(dict.fromkeys((*getattr(before, field), *getattr(after, field))))
        for field in ("requirements", "mentioned_integrations", "mentioned_tools")
    }
    flags = {**before.event_flags, **after.event_flags}
    return after.model_copy(update={**kept, "event_flags": flags})
