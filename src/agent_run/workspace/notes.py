"""The notes we leave beside a checkout, read back into what they were made from."""

import json
from pathlib import Path

from agent_run.ports.workspace import Base, Candidate, Change, Checkout, Issue


def checkout_from(text: str) -> Checkout:
    """Return the checkout that `text` was written from."""
    note = json.loads(text)
    base = note["base"]
    return Checkout(
        path=Path(note["path"]),
        top=Path(note["top"]),
        home=Path(note["home"]),
        base=Base(
            commit=base["commit"],
            tree=base["tree"],
            root=Path(base["root"]),
            prefix=base["prefix"],
            carried=tuple(base["carried"]),
            notes=tuple(base["notes"]),
        ),
        task_id=note["task_id"],
        claim=note["claim"],
        identity=(note["identity"][0], note["identity"][1]),
    )


def candidate_from(text: str) -> Candidate:
    """Return the candidate that `text` was written from."""
    note = json.loads(text)
    return Candidate(
        tree=note["tree"],
        changes=tuple(Change(**one) for one in note["changes"]),
        refused=tuple(Issue(**one) for one in note["refused"]),
        dropped=tuple(note["dropped"]),
        store=Path(note["store"]) if note["store"] else None,
    )
