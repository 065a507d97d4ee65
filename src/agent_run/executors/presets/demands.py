"""What the command lines without a vendor of their own demand of an endpoint."""

from collections.abc import Mapping

from agent_run.errors import ContractError
from agent_run.executors.presets.shapes import Endpoint


def address(endpoint: Endpoint, preset: str) -> tuple[str, str]:
    """Return the address and the model.

    Raises:
        ContractError: one of them is not configured.
    """
    if endpoint.base_url is None or endpoint.model is None:
        missing = "base_url" if endpoint.base_url is None else "model"
        msg = f"preset {preset!r} has no {missing} configured, expected base_url and model"
        raise ContractError(msg)
    return endpoint.base_url, endpoint.model


def key_of(endpoint: Endpoint, inside: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the placeholder and the secret for the variable `inside`; one of them is empty."""
    if endpoint.api_key_env is None:
        return {inside: "none"}, {}
    return {}, {inside: endpoint.api_key_env}


def chat_model(model: str) -> str:
    """Return the name that makes litellm speak chat completions with the given address."""
    return model if model.startswith("openai/") else f"openai/{model}"
