"""Models of Anthropic, or anything that speaks its messages. Needs the library `anthropic`."""

from typing import Final

from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from agent_run.models.names import ModelName
from agent_run.models.options import ModelOptions

_ADDRESS: Final = "https://api.anthropic.com"
_NO_KEY: Final = "none"


def build(wanted: ModelName, options: ModelOptions) -> Model:
    """Return the model, with everything said that the library would look up by itself."""
    provider = AnthropicProvider(
        base_url=(wanted.base_url or _ADDRESS).removesuffix("/v1"),
        api_key=options.api_key or _NO_KEY,
    )
    return AnthropicModel(wanted.model, provider=provider)
