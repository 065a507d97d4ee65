"""How results are told: JSON lines for machines, then a table for people."""

import json
from collections.abc import Mapping, Sequence


def tell(rows: Sequence[Mapping[str, object]]) -> None:
    """Print each row as JSON, then all of them as a Markdown table."""
    for row in rows:
        print(json.dumps(dict(row)))
    print()
    heads = list(dict.fromkeys(head for row in rows for head in row))
    cells = [[_shown(row.get(head, "")) for head in heads] for row in rows]
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for line in cells:
        print("| " + " | ".join(line) + " |")


def _shown(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
