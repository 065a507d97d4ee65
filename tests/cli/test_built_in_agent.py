"""The built-in agent through the door: a scripted model edits, runs and records."""

import json
from pathlib import Path

from tests.support.command_line import AGENTS_RECORD, agent_run

MANIFEST = """\
task_id: fix-answer
objective: Make the answer right
allowed_paths: [app.py]
executor: {executor}
verification: [python3 check.py]
budget: {{max_tokens: 200000, max_attempts: 1}}
"""


def test_the_built_in_agent_does_a_task_and_its_calls_are_on_the_ledger(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    turns = [
        {
            "calls": [
                {"name": "edit", "arguments": {"path": "app.py", "old": "41", "new": "42"}}
            ]
        },
        {"calls": [{"name": "run", "arguments": {"command": "python3 check.py"}}]},
        {"calls": [{"name": "final_result", "arguments": AGENTS_RECORD}]},
    ]
    script.write_text(json.dumps(turns))
    project = tmp_path / "project"
    project.mkdir()
    (project / "agent-run.toml").write_text("")
    (project / "app.py").write_text("ANSWER = 41\n")
    (project / "check.py").write_text("from app import ANSWER\nassert ANSWER == 42\n")
    (project / "task.yaml").write_text(MANIFEST.format(executor=f"agent:scripted:{script}"))

    done = agent_run(project, "execute", "task.yaml", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["observed"]["commands_run"] == ["python3 check.py"]
    assert told["observed"]["files_changed"] == ["app.py"]
    pages = agent_run(project, "ledger", "--jsonl").stdout
    assert pages.count('"spend_reserved"') == pages.count('"spend_settled"') > 0
