"""What gates found before, as small files under the hash of what they judged."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class FileCache:
    """Keeps findings in a folder of our own, which no executor can see."""

    folder: Path

    def get(self, key: str) -> JsonValue:
        """Return what was kept under `key`, or None."""
        try:
            value: JsonValue = json.loads(self._place(key).read_bytes())
        except (FileNotFoundError, ValueError):
            return None  # never kept, or cut short by a crash: it is found out again
        return value

    def put(self, key: str, value: JsonValue) -> None:
        """Keep `value` under `key`, whole or not at all."""
        place = self._place(key)
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(value))
        draft.replace(place)

    def _place(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


class NoCache:
    """Forgets everything, so that everything is found out again."""

    def get(self, key: str) -> JsonValue:
        """Return None."""
        return None

    def put(self, key: str, value: JsonValue) -> None:
        """Keep nothing."""
