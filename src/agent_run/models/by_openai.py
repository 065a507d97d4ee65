"""Models of OpenAI, or anything that speaks like it. Needs the library `openai`."""

from typing import Final

from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from agent_run.models.names import ModelName
from agent_run.models.options import ModelOptions

_ADDRESS: Final = "https://api.openai.com/v1"


def build(wanted: ModelName, options: ModelOptions) -> Model:
    """Return the model, with everything said that the library would look up by itself."""
    provider: OpenAIProvider | OpenAICompatibleProvider
    if wanted.base_url is None:
        provider = OpenAIProvider(base_url=_ADDRESS, api_key=options.api_key)
    else:
        # A key of OpenAI in the environment is never sent to another address.
        provider = OpenAICompatibleProvider(
            "openai-compatible", base_url=wanted.base_url, api_key=options.api_key
        )
    if wanted.provider == "openai-chat":
        return OpenAIChatModel(wanted.model, provider=provider)
    return OpenAIResponsesModel(wanted.model, provider=provider)
