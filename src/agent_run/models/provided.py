"""pydantic-ai behind our port. Loaded by `opening` only, because it is heavy.

The provider's library does not retry by itself: every try is paid for and written down by us.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from typing import Final

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from pydantic_ai import exceptions as theirs
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model as TheirModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ModelSettings

from agent_run.errors import ModelError, ModelRefused, ModelUnreachable
from agent_run.models import translating
from agent_run.models.answering import one_line, whole
from agent_run.models.names import ModelName, Provider
from agent_run.models.options import FREE, ModelOptions
from agent_run.ports.model import ModelAnswer, ModelRequest, Usage

_BUILDERS: Final[Mapping[Provider, str]] = {
    "anthropic": "agent_run.models.by_anthropic",
    "openai": "agent_run.models.by_openai",
    "openai-chat": "agent_run.models.by_openai",
}
_TRY_LATER: Final = (
    theirs.ModelRateLimitError,
    theirs.ModelUnavailableError,
    theirs.ModelServerError,
)
_TAKES_IT_NEVER: Final = (
    theirs.ModelRequestRejectedError,
    theirs.ModelQuotaExceededError,
    theirs.ModelHTTPError,
    theirs.UserError,
)
_NEVER_SENT: Final = frozenset({"pool", "connect"})


@dataclass(frozen=True, slots=True)
class ProvidedModel:
    """A model of a provider, asked through pydantic-ai."""

    wanted: ModelName
    options: ModelOptions
    inner: TheirModel
    native: bool
    """Whether the provider takes a JSON Schema for the answer itself."""

    @property
    def name(self) -> str:
        return self.wanted.text

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Ask once, without any retry."""
        try:
            # Entered each time, so that no connection outlives the question or its event loop.
            async with self.inner:
                response = await model_request(
                    self.inner,
                    translating.conversation(request),
                    model_settings=self._settings(request),
                    model_request_parameters=translating.parameters(
                        request, native=self.native
                    ),
                )
        except Exception as error:
            raise _translated(self.name, error) from error
        return whole(self._answer(response, request), request)

    def price(self, usage: Usage) -> Decimal | None:
        """Return the price by the user's own word, or by the list for this provider."""
        if self.options.price is not None:
            return self.options.price.of(usage)
        if self.wanted.base_url is not None:
            return None  # who serves it elsewhere has prices of his own
        used = PricedUsage(
            input_tokens=usage.tokens_in,
            output_tokens=usage.tokens_out,
            cache_read_tokens=usage.cached_in,
        )
        provider = self.wanted.provider.removesuffix("-chat")
        try:
            return calc_price(used, self.wanted.model, provider_id=provider).total_price
        except LookupError:
            return None

    def _settings(self, request: ModelRequest) -> ModelSettings:
        patience = request.timeout.total_seconds() if request.timeout else None
        settings = ModelSettings(
            max_tokens=request.max_output_tokens,
            max_retries=0,
            request_timeout=patience or self.options.timeout_sec,
        )
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        if request.must_use_tool:
            settings["tool_choice"] = "required"
        return settings

    def _answer(self, response: ModelResponse, request: ModelRequest) -> ModelAnswer:
        usage = translating.usage_of(response)
        text, calls = translating.text_of(response), translating.calls_of(response)
        if request.output_schema is not None and not self.native:
            given = next((one for one in response.tool_calls if _is_answer(one, request)), None)
            text = given.args_as_json_str() if given else text
            calls = tuple(one for one in calls if one.name != request.output_name)
        ended = translating.ended_of(response)
        return ModelAnswer(
            model=response.model_name or self.wanted.model,
            text=text,
            calls=calls,
            ended="tools" if calls and ended == "stop" else ended,
            usage=usage,
            cost_usd=self.price(usage),
            opaque=translating.opaque_of(response),
        )


def provided(wanted: ModelName, options: ModelOptions) -> ProvidedModel:
    """Return the model `wanted`.

    Raises:
        ImportError: The provider's library is not installed.
    """
    if wanted.provider not in _BUILDERS:
        free = options if options.price else replace(options, price=FREE)
        return ProvidedModel(wanted, free, TestModel(model_name="test"), native=False)
    builder = import_module(_BUILDERS[wanted.provider])
    inner: TheirModel = builder.build(wanted, options)
    elsewhere = wanted.base_url is not None and wanted.provider != "anthropic"
    native = elsewhere or bool(inner.profile.get("supports_json_schema_output"))
    return ProvidedModel(wanted, options, inner, native)


def _is_answer(call: ToolCallPart, request: ModelRequest) -> bool:
    return call.tool_name == request.output_name


def _translated(name: str, error: Exception) -> ModelError:
    """Return our error for theirs; what is not known to be free may have cost something."""
    said = one_line(error)
    match error:
        case _ if isinstance(error, _TRY_LATER):
            return ModelUnreachable(
                f"model {name!r} cannot answer now: {said}", wait_sec=error.retry_after
            )
        case theirs.ModelConnectionError():
            sent = error.phase not in _NEVER_SENT and not _refused(error)
            msg = f"model {name!r} cannot be reached: {said}"
            return ModelUnreachable(msg, may_have_cost=sent)
        case theirs.ModelRequestTimeout():
            msg = f"model {name!r} gave no answer in time: {said}"
            return ModelUnreachable(msg, may_have_cost=True)
        case _ if isinstance(error, _TAKES_IT_NEVER):
            return ModelRefused(f"model {name!r} does not take the request: {said}")
        case _:
            msg = f"what model {name!r} sent is no answer: {type(error).__name__}: {said}"
            return ModelUnreachable(msg, may_have_cost=True)


def _refused(error: BaseException) -> bool:
    """Say whether nobody listened at the address, so that nothing was sent."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError) or "ConnectError" in type(cause).__name__:
            return True
        cause = cause.__cause__ or cause.__context__
    return False
