"""What the README shows is what a person sees."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGES = re.compile(r"\b(cached|\d+\.\d+s|\d+ s)\b")


def shown_transcript() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.split("<!-- demo -->\n```console\n", 1)[1].split("\n```", 1)[0]
    command, *lines = block.splitlines()
    assert command == "$ python3 run.py demo"
    return lines


def test_the_transcript_of_the_readme_is_what_the_demo_prints(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent_run", "demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    printed = [CHANGES.sub("#", line) for line in done.stdout.splitlines()]

    at = 0
    for part in "\n".join(shown_transcript()).split("\n...\n"):
        wanted = [CHANGES.sub("#", line) for line in part.splitlines() if line != "..."]
        found = [
            start
            for start in range(at, len(printed) - len(wanted) + 1)
            if printed[start : start + len(wanted)] == wanted
        ]
        assert found, "not printed in this order:\n" + "\n".join(wanted)
        at = found[0] + len(wanted)


def test_every_link_of_the_readme_leads_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    for target in re.findall(r"\]\(([\w./-]+\.md)\)", text):
        assert (ROOT / target).exists(), target
