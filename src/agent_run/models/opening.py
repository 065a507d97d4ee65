"""From the name of a model to the model; only here a provider's library is loaded."""

from importlib import import_module
from pathlib import Path
from typing import Final, cast

from agent_run.errors import ModelMissing
from agent_run.models.names import ModelName, parse_model
from agent_run.models.options import ModelOptions
from agent_run.models.scripted import load_script
from agent_run.ports.model import Model

_ADAPTER: Final = "agent_run.models.provided"


def open_model(name: str, options: ModelOptions | None = None) -> Model:
    """Return the model called `name`.

    Raises:
        ContractError: `name` is not a name of a model.
        ModelMissing: The library or the key it needs is not there.
    """
    wanted, given = parse_model(name), options or ModelOptions()
    if wanted.provider == "scripted":
        return load_script(Path(wanted.model))
    if given.api_key is None and wanted.base_url is None and wanted.provider != "test":
        msg = f"model {wanted.text!r} needs an API key, and none is configured"
        raise ModelMissing(msg)
    return _provided(wanted, given)


def _provided(wanted: ModelName, options: ModelOptions) -> Model:
    try:
        adapter = import_module(_ADAPTER)
        # The adapter is loaded by its name so that a ledger can be read without any provider.
        return cast("Model", adapter.provided(wanted, options))
    except ImportError as error:
        msg = f"model {wanted.text!r} needs a library that is not installed: {error}"
        raise ModelMissing(msg) from error
