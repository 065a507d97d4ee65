"""Around the work: init, doctor, config, schema, completion."""

import json
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest

from agent_run.cli.setting_up import DOCUMENTS
from agent_run.cli.work.doctor import EXTRAS
from agent_run.cli.work.schemas import MODELS
from agent_run.contract.reading import read_document
from tests.contract import test_seed_documents as seeds
from tests.support.command_line import Ask

JOINED = "{task_id: d, objective: e}"
JOIN = "synthesis: {task_id: a, objective: b}\n"


def test_init_writes_what_is_missing_and_the_example_can_be_posted(
    ask: Ask, folder: Path
) -> None:
    (folder / "agent-run.toml").unlink()

    answer = ask("init", "--json")

    assert answer.json["written"] == [
        "agent-run.toml",
        "tasks/example.yaml",
        ".agent-run/.gitignore",
    ]
    assert (folder / ".agent-run" / "ledger.db").exists()
    assert ask("check", "tasks").code == 0
    assert ask("post", "tasks").code == 0
    assert ask("config", "show").code == 0


def test_init_overwrites_nothing(ask: Ask, folder: Path) -> None:
    (folder / "agent-run.toml").write_text('owner = "bob"\n')
    (folder / "tasks").mkdir()
    (folder / "tasks" / "example.yaml").write_text("mine")

    answer = ask("init")

    assert "kept agent-run.toml" in answer.out
    assert (folder / "agent-run.toml").read_text() == 'owner = "bob"\n'
    assert (folder / "tasks" / "example.yaml").read_text() == "mine"


def test_init_keeps_settings_that_stand_in_pyproject(ask: Ask, folder: Path) -> None:
    (folder / "agent-run.toml").unlink()
    (folder / "pyproject.toml").write_text('[tool.agent-run]\nowner = "bob"\n')

    ask("init")

    assert not (folder / "agent-run.toml").exists()


def test_a_dry_init_writes_nothing(ask: Ask, folder: Path) -> None:
    before = sorted(folder.rglob("*"))

    assert ask("init", "--dry-run").code == 0
    assert sorted(folder.rglob("*")) == before


def test_the_commented_settings_are_settings(ask: Ask, folder: Path) -> None:
    (folder / "agent-run.toml").unlink()
    ask("init")
    file = folder / "agent-run.toml"
    lines = file.read_text().splitlines()
    live = [line.removeprefix("# ") for line in lines[4:]]
    file.write_text("\n".join(live))

    answer = ask("config", "show", "--json")

    assert answer.code == 0, answer.err
    assert set(answer.json["settings"]["executors"]) == {"fixer", "script"}


def test_config_tells_where_each_value_came_from(
    ask: Ask, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "agent-run.toml").write_text('fence = "off"\nowner = "bob"\n')
    monkeypatch.setenv("AGENT_RUN_OWNER", "eve")
    monkeypatch.setenv("AGENT_RUN_COLOUR", "red")

    answer = ask("config", "show", "--json", "--store", "sqlite:///x.db")

    origins = answer.json["origins"]
    assert origins["fence"] == str(folder / "agent-run.toml")
    assert origins["owner"] == "AGENT_RUN_OWNER"
    assert origins["store"] == "--store"
    assert origins["dirty"] == "built in"
    assert answer.json["unknown"] == ["AGENT_RUN_COLOUR"]
    assert "AGENT_RUN_OWNER" in ask("config", "show", "--origin").out


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:secret@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://ada:se:cr@et@host/db", "postgresql://ada:***@host/db"),
        (
            "postgresql://host/db?user=a&password=secret",
            "postgresql://host/db?user=a&password=***",
        ),
        ("postgresql://ada@host/db", "postgresql://ada@host/db"),
        ("sqlite:////tmp/a%20b.db", "sqlite:////tmp/a%20b.db"),
    ],
)
def test_a_password_is_not_shown(ask: Ask, url: str, shown: str) -> None:
    answer = ask("config", "show", "--json", "--store", url)

    assert answer.json["settings"]["store"] == shown
    assert "secret" not in ask("config", "show", "--store", url).out


def test_settings_that_are_none_are_2_and_doctor_says_so(ask: Ask, folder: Path) -> None:
    (folder / "agent-run.toml").write_text('fence = "maybe"\n')

    answer = ask("status")

    assert answer.code == 2
    assert "fence" in answer.err
    assert ask("doctor").code == 3


def test_doctor_names_what_it_looked_at_and_how_to_fix_it(ask: Ask) -> None:
    answer = ask("doctor", "--json")

    found = {finding["name"]: finding for finding in answer.json["findings"]}
    assert {"python", "git", "sqlite", "settings", "ledger", "postgres", "fence"} <= set(found)
    assert found["ledger"]["state"] == "note"
    assert all(finding["fix"] for finding in found.values() if finding["state"] != "ok"), (
        "each finding that is not well says how to fix it"
    )
    assert answer.code == 0


def test_doctor_knows_every_extra_of_the_package_and_how_to_install_it(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    offered = set(tomllib.loads(project.read_text())["project"]["optional-dependencies"])
    monkeypatch.setattr("agent_run.cli.work.doctor.find_spec", lambda module: None)

    findings = ask("doctor", "--json").json["findings"]

    found = {finding["name"]: finding for finding in findings}
    assert set(EXTRAS) == offered
    assert all(found[name]["state"] == "note" for name in EXTRAS)
    assert all(f"pip install 'agent-run[{name}]'" in found[name]["fix"] for name in EXTRAS)


def test_doctor_misses_git_when_it_is_not_there(
    ask: Ask, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))

    answer = ask("doctor", "--json")

    assert answer.code == 3
    missing = [each["name"] for each in answer.json["findings"] if each["state"] == "missing"]
    assert missing == ["git"]


def test_a_ledger_that_cannot_be_opened_is_3(ask: Ask, folder: Path) -> None:
    (folder / "not-a-ledger.db").write_text("this is no database" * 100)

    answer = ask("status", "--store", "sqlite:///not-a-ledger.db")

    assert answer.code == 3
    assert "cannot be opened" in answer.err


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_has_a_schema(ask: Ask, name: str) -> None:
    plain, told = ask("schema", name), ask("--json", "schema", name)

    assert json.loads(plain.out) == told.json
    assert "object" in told.json["type"]
    assert told.json["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("manifest", seeds.MANIFEST),
        ("record", seeds.RECORD),
        ("claim", seeds.CLAIM_CHECK),
        ("envelope", seeds.ENVELOPE),
        ("orchestration", f"{JOIN}worker: {{executor: c}}\ndecompose: {JOINED}"),
        ("routing", "intent: a\nstart: b\nspecialists: {b: {objective: c}}"),
        ("checklist", "- No known misspelling"),
        ("checklist", "steps: [Tone, {id: a, goal: Links, check: links}]"),
        ("lexicon", "forbidden: [{id: a, phrases: risk free}]"),
        ("rule", "extends: substitution\nswap: {utilize: use}\nscope: [text, list]"),
        ("dataset", '{"case_id": "a", "input": "a.md", "human": {"decision": "pass"}}'),
        ("rubric", "rubric_id: r\ncriteria: [{name: a, question: b}]"),
        ("canary", "name: c\nshare: 0.1\nchanges: {executor: b}"),
    ],
)
def test_an_editor_that_knows_only_the_schema_accepts_what_the_reader_accepts(
    ask: Ask, name: str, document: str
) -> None:
    schema = ask("schema", name, "--json").json
    value = read_document(document, source="seed").value

    errors = jsonschema_rs.validator_for(schema).iter_errors(value)

    assert [error.message for error in errors] == []


def test_the_schemas_are_listed(ask: Ask) -> None:
    assert sorted(MODELS) == sorted(DOCUMENTS)
    assert sorted(ask("schema", "--json").json["schemas"]) == sorted(DOCUMENTS)
    assert "manifest" in ask("schema").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(ask: Ask, shell: str) -> None:
    answer = ask("completion", shell)

    assert answer.code == 0
    assert "_AGENT_RUN_COMPLETE" in answer.out
    assert ask("completion", shell, "--json").json["shell"] == shell
