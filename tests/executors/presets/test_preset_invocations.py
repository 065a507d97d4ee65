"""What each preset wants to be started, written and read."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from agent_run.errors import ContractError
from agent_run.executors.presets import PRESETS, Assignment, Endpoint, Invocation, Program

HOME = Path("/private/home")
LOCAL = Endpoint("http://127.0.0.1:8080/v1", "small-coder", "MY_KEY")
ASSIGNMENT = Assignment(
    brief="Repair add.",
    brief_path=Path("/private/brief.md"),
    workspace=Path("/work/space"),
    home=HOME,
    program=Program(("/opt/tool/tool",), (Path("/opt/tool"),)),
    endpoint=LOCAL,
    editable=("calc.py",),
)


def invoked(name: str, **changes: object) -> Invocation:
    return PRESETS[name].invocation(replace(ASSIGNMENT, **changes))  # type: ignore[arg-type] # names are checked by replace


@pytest.mark.parametrize("name", PRESETS)
def test_everything_stays_in_the_private_home(name: str) -> None:
    invocation = invoked(name)

    assert invocation.cwd == ASSIGNMENT.workspace
    assert invocation.env["HOME"] == str(HOME)
    for path in (*invocation.files, *invocation.folders, *invocation.results.values()):
        assert path.is_relative_to(HOME)
    for path in invocation.files:
        assert path.parent == HOME or path.parent in invocation.folders


@pytest.mark.parametrize("name", PRESETS)
def test_the_temporary_folder_holds_nobodys_settings(name: str) -> None:
    invocation = invoked(name)
    temporary = Path(invocation.env["TMPDIR"])

    assert temporary in invocation.folders
    assert not any(path.is_relative_to(temporary) for path in invocation.files)
    assert not Path(invocation.env.get("CODEX_HOME", "/")).is_relative_to(temporary)


@pytest.mark.parametrize("name", PRESETS)
def test_the_model_is_all_that_the_network_is_needed_for(name: str) -> None:
    invocation = invoked(name)

    assert invocation.hosts == ("127.0.0.1:8080",)
    assert invocation.readable == (Path("/opt/tool"),)
    assert invocation.argv[0] == "/opt/tool/tool"


@pytest.mark.parametrize("name", PRESETS)
def test_a_key_is_named_and_never_written_down(name: str) -> None:
    invocation = invoked(name)
    ((inside, outside),) = invocation.secrets.items()

    assert outside == "MY_KEY"
    assert inside not in invocation.env


@pytest.mark.parametrize("name", PRESETS)
def test_an_endpoint_without_a_key_gets_a_placeholder(name: str) -> None:
    invocation = invoked(name, endpoint=replace(LOCAL, api_key_env=None))

    assert not invocation.secrets
    assert "none" in invocation.env.values()


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(
    "brief", ["--help", "-x", "$(touch x) `y`", "two\nlines", "half \ud800"]
)
def test_a_brief_is_never_taken_for_a_flag(name: str, brief: str) -> None:
    invocation = invoked(name, brief=brief)

    flags = invocation.argv[: -len(ASSIGNMENT.editable)]
    assert not any(word.startswith(brief) for word in flags if word != "--")
    assert invocation.argv[-2] == "--" or invocation.argv[-1].startswith("--task=")
    for word in (*invocation.argv, *invocation.files.values()):
        word.encode()


@pytest.mark.parametrize("name", PRESETS)
def test_a_brief_too_long_for_a_flag_is_read_from_its_file(name: str) -> None:
    invocation = invoked(name, brief="x" * 200_000)

    assert max(len(word) for word in invocation.argv) < 128 * 1024
    told = "/private/brief.md" in invocation.argv[-1]
    assert told or any("x" * 200_000 in text for text in invocation.files.values())


@pytest.mark.parametrize("name", PRESETS)
def test_a_brief_with_a_nul_is_refused(name: str) -> None:
    with pytest.raises(ContractError, match="NUL"):
        invoked(name, brief="a\0b")


@pytest.mark.parametrize("name", ["opencode", "aider", "mini-swe-agent"])
@pytest.mark.parametrize(
    ("endpoint", "missing"),
    [(Endpoint(model="m"), "base_url"), (Endpoint("http://localhost/v1"), "model")],
)
def test_presets_without_a_vendor_say_what_is_not_configured(
    name: str, endpoint: Endpoint, missing: str
) -> None:
    with pytest.raises(ContractError, match=f"preset {name!r} has no {missing} configured"):
        invoked(name, endpoint=endpoint)


@pytest.mark.parametrize(
    ("name", "host", "key"),
    [
        ("claude", "api.anthropic.com:443", {"ANTHROPIC_API_KEY": "ANTHROPIC_API_KEY"}),
        ("codex", "api.openai.com:443", {"AGENT_RUN_MODEL_KEY": "OPENAI_API_KEY"}),
    ],
)
def test_a_vendor_is_used_where_nothing_is_configured(
    name: str, host: str, key: dict[str, str]
) -> None:
    invocation = invoked(name, endpoint=Endpoint())

    assert invocation.hosts == (host,)
    assert invocation.secrets == key


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_url", "ftp://host"),
        ("base_url", "http://user:password@host/v1"),
        ("base_url", 'http://host/v1"\nx = 1'),
        ("base_url", "http://host:99999/v1"),
        ("base_url", ""),
        ("model", "--flag"),
        ("model", 'a"\n[features]'),
        ("model", "two words"),
        ("api_key_env", "A=B"),
        ("api_key_env", ""),
    ],
)
def test_an_endpoint_that_could_smuggle_settings_is_refused(field: str, value: str) -> None:
    with pytest.raises(ContractError, match=f"{field} of the model endpoint"):
        replace(LOCAL, **{field: value})


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("http://localhost/v1", "localhost:80"),
        ("https://models.example/v1", "models.example:443"),
        ("http://[::1]:9000", "[::1]:9000"),
    ],
)
def test_hosts_always_name_a_port(address: str, host: str) -> None:
    assert Endpoint(address).hosts("") == (host,)


def test_claude_may_use_its_tools_without_skipping_permissions() -> None:
    invocation = invoked("claude")
    flags = dict(zip(invocation.argv, invocation.argv[1:], strict=False))

    assert flags["--permission-mode"] == "acceptEdits"
    assert flags["--output-format"] == "stream-json"
    assert json.loads(flags["--json-schema"])["type"] == "object"
    assert "--dangerously-skip-permissions" not in invocation.argv
    assert invocation.env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8080"
    assert invocation.env["DISABLE_TELEMETRY"] == "1"
    assert invocation.env["DISABLE_AUTOUPDATER"] == "1"


def test_claude_takes_a_login_token_as_what_it_is() -> None:
    endpoint = Endpoint(api_key_env="CLAUDE_CODE_OAUTH_TOKEN")

    invocation = invoked("claude", endpoint=endpoint)

    assert invocation.secrets == {"CLAUDE_CODE_OAUTH_TOKEN": "CLAUDE_CODE_OAUTH_TOKEN"}


def test_codex_has_one_provider_and_no_sandbox_of_its_own() -> None:
    invocation = invoked("codex")
    settings = tomllib.loads(invocation.files[HOME / ".codex" / "config.toml"])

    assert invocation.argv[invocation.argv.index("-s") + 1] == "danger-full-access"
    assert settings["model"] == "small-coder"
    assert settings["model_providers"]["agent_run"]["base_url"] == LOCAL.base_url
    assert settings["model_providers"]["agent_run"]["wire_api"] == "responses"
    assert settings["analytics"]["enabled"] is False
    assert settings["features"]["unbounded_connection_retries"] is False


def test_opencode_reads_its_key_from_the_environment() -> None:
    invocation = invoked("opencode")
    settings = json.loads(invocation.files[HOME / "opencode.json"])
    provider = settings["provider"]["agent_run"]

    assert provider["options"]["apiKey"] == "{env:AGENT_RUN_MODEL_KEY}"
    assert provider["options"]["baseURL"] == LOCAL.base_url
    assert settings["share"] == "disabled"
    assert "JSON Schema" in invocation.argv[-1]


def test_aider_is_told_what_it_may_edit_and_keeps_its_hands_off_git() -> None:
    invocation = invoked("aider")

    assert invocation.argv[-2:] == ("--", "calc.py")
    assert "--no-git" in invocation.argv
    assert invocation.files[HOME / "message.md"] == ASSIGNMENT.brief


def test_mini_swe_agent_names_where_the_record_goes() -> None:
    invocation = invoked("mini-swe-agent")

    assert invocation.results["record"] == HOME / "record.json"
    assert str(HOME / "record.json") in invocation.argv[-1]
    assert "openai/small-coder" in invocation.argv
