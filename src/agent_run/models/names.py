"""Names of models: `provider:model`, and `@address` for one that is served elsewhere."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from agent_run.errors import ContractError

Provider: TypeAlias = Literal["anthropic", "openai", "openai-chat", "scripted", "test"]

_PROVIDERS: Final = get_args(Provider)
_EXPECTED: Final = (
    "expected 'anthropic:MODEL', 'openai:MODEL', 'openai-chat:MODEL@http://HOST/v1', "
    "'scripted:FILE' or 'test'"
)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A name that was understood."""

    provider: Provider
    model: str
    base_url: str | None = None
    """Where it is served. `None` is the provider's own address."""

    @property
    def text(self) -> str:
        """The name without the address, as it stands in records."""
        return f"{self.provider}:{self.model}" if self.model else self.provider


def parse_model(text: str) -> ModelName:
    """Return what `text` names.

    Raises:
        ContractError: It is not a name of a model.
    """
    kind, _, rest = text.partition(":")
    provider = next((one for one in _PROVIDERS if one == kind), None)
    if provider is None:
        msg = f"model {text!r} has no provider that is known here, {_EXPECTED}"
        raise ContractError(msg)
    if provider == "test":
        return ModelName("test", "")
    model, at, address = rest.rpartition("@") if _has_address(rest) else (rest, "", "")
    if not model:
        msg = f"model {text!r} names no model, {_EXPECTED}"
        raise ContractError(msg)
    return ModelName(provider, model, _address(text, address) if at else None)


def _has_address(rest: str) -> bool:
    return "@http://" in rest or "@https://" in rest


def _address(text: str, address: str) -> str:
    parts = urlsplit(address)
    if not parts.hostname or parts.username or parts.query or parts.fragment:
        msg = f"model {text!r} has the address {address!r}, expected one like 'http://HOST/v1'"
        raise ContractError(msg)
    return address.rstrip("/")
