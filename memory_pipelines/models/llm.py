"""Chat with any OpenAI-compatible endpoint, within a budget of tokens and money.

Belongs here: the client, retries, what a server understands, the cost meter. Does not belong here:
prompts, or what a reply means. No text of a request or reply enters an exception: only status codes.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from memory_pipelines.errors import PermanentError, SettingError, TransientError
from memory_pipelines.settings import PREFIX, Settings

if TYPE_CHECKING:
    import openai

ATTEMPTS = 4
LONGEST_WAIT = 60.0
"""Seconds: a server that asks for more (Retry-After) is asked again after this."""
MESSAGE_OVERHEAD = 16
"""Tokens that roles and separators of one message take at most."""
FORMATS = ("json_schema", "json_object", "text")
"""Ways to ask for JSON, best first; a server that refuses one is asked in the next."""

_UNSENT = ("ConnectError", "ConnectTimeout")
"""Causes of a failure before the request was sent. After any other the server may be at work on it and
bill it, so that what was reserved counts as spent."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What requests cost: tokens as the server counted them, money in the currency of the price settings."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.requests + other.requests,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            round(self.money + other.money, 6),
        )


FREE = Usage()


class _Spent:
    """What a call had cost before it failed."""

    usage = FREE


class BudgetExhaustedError(_Spent, PermanentError):
    """The next request could cost more than is left of the run's budget; it was not sent."""


class ModelRefusedError(_Spent, PermanentError):
    """The endpoint refuses this request (too long, not allowed); the same one will be refused again."""


class ModelUnavailableError(_Spent, TransientError):
    """The endpoint did not answer usably after all attempts."""


_Failure = TypeVar("_Failure", bound=_Spent)


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Reply:
    """``truncated``: the model ran into the token limit. ``usage`` holds all attempts of the call."""

    text: str
    truncated: bool
    usage: Usage


class CostMeter:
    """The budget of one run. What may be spent is reserved before a request, and counted after it.

    ``max_cost`` 0: money is not limited. Prices are per 1,000 tokens. Safe to share between threads."""

    def __init__(
        self, max_tokens: int, max_cost: float = 0.0, price_per_1k_in: float = 0.0, price_per_1k_out: float = 0.0
    ) -> None:
        self._limits = max_tokens, max_cost
        self._prices = price_per_1k_in, price_per_1k_out
        self._lock = Lock()
        self._spent = self._reserved = FREE

    @property
    def spent(self) -> Usage:
        return self._spent

    def usage(self, tokens_in: int, tokens_out: int) -> Usage:
        """One request of so many tokens, with its price."""
        money = (tokens_in * self._prices[0] + tokens_out * self._prices[1]) / 1000
        return Usage(1, tokens_in, tokens_out, round(money, 6))

    def reserve(self, tokens_in: int, tokens_out: int) -> Usage:
        """Set aside what a request may cost at most. Raises BudgetExhaustedError if that is more than is left."""
        wanted = self.usage(tokens_in, tokens_out)
        max_tokens, max_cost = self._limits
        with self._lock:
            total = self._spent + self._reserved + wanted
            if total.tokens > max_tokens:
                raise BudgetExhaustedError(f"the run's token budget is used up; see {PREFIX}LLM_MAX_TOKENS_PER_RUN")
            if max_cost and total.money > max_cost:
                raise BudgetExhaustedError(f"the run's money is used up; see {PREFIX}LLM_MAX_COST_PER_RUN")
            self._reserved += wanted
        return wanted

    def settle(self, reserved: Usage, used: Usage) -> None:
        """Count what a request really cost in place of what was set aside for it."""
        back = Usage(-reserved.requests, -reserved.tokens_in, -reserved.tokens_out, -reserved.money)
        with self._lock:
            self._reserved += back
            self._spent += used


def token_bound(texts: Sequence[str]) -> int:
    """No fewer tokens than any tokenizer makes of the texts: a token of a byte-level vocabulary has a byte or more.

    Four times too many for English, about twice for Chinese: a budget is kept, never nearly kept."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What the endpoint understands of the protocol, learnt from its refusals."""

    format: int = 0
    limit: str = "max_tokens"
    temperature: bool = True

    def arguments(self, name: str, schema: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
        made: dict[str, Any] = {self.limit: max_tokens}
        if self.temperature:
            made["temperature"] = 0
        if FORMATS[self.format] == "json_schema":
            described = {"name": name, "strict": True, "schema": schema}
            made["response_format"] = {"type": "json_schema", "json_schema": described}
        elif FORMATS[self.format] == "json_object":
            made["response_format"] = {"type": "json_object"}
        return made

    def after(self, refusal: str) -> "_Dialect | None":
        """What to try after a refusal of so many words; None if nothing is left."""
        if self.limit == "max_tokens" and "max_completion_tokens" in refusal:
            return replace(self, limit="max_completion_tokens")
        if self.temperature and "temperature" in refusal:
            return replace(self, temperature=False)
        if "context" in refusal and "length" in refusal:
            return None
        return replace(self, format=self.format + 1) if self.format + 1 < len(FORMATS) else None


class ChatModel:
    """One model behind an OpenAI-compatible endpoint. Every request is reserved on ``meter`` first.

    The ``openai`` package's own retries are off: they would not ask the meter. ``sleep`` waits seconds."""

    def __init__(
        self,
        *,
        url: str,
        model: str,
        meter: CostMeter,
        api_key: str = "",
        timeout_seconds: float = 60.0,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises SettingError for a URL that is none, or without the package ``openai``."""
        if not url.startswith(("http://", "https://")):
            raise SettingError(f"{PREFIX}LLM_URL must start with http:// or https://")
        if not model:
            raise SettingError(f"{PREFIX}LLM_URL is set, so {PREFIX}LLM_MODEL must name a model")
        self.meter = meter
        self._model = model
        self._attempts = attempts
        self._sleep = sleep
        self._dialect = _Dialect()
        self._client = client(url, api_key.strip(), timeout_seconds)

    def complete(self, messages: Sequence[Message], *, name: str, schema: Mapping[str, Any], max_tokens: int) -> Reply:
        """One reply of at most ``max_tokens``, asked for as JSON of ``schema`` (called ``name``).

        429, 5xx, timeouts and replies that are none are tried again, after what Retry-After says or 1, 2, 4 s.
        Raises BudgetExhaustedError, ModelRefusedError, ModelUnavailableError, each with the ``usage`` so far;
        SettingError for a wrong key, model or address."""
        bound = token_bound([*(m.content for m in messages), str(schema)]) + MESSAGE_OVERHEAD * (len(messages) + 1)
        sent = [{"role": m.role, "content": m.content} for m in messages]
        spent, failures, dialect = FREE, 0, self._dialect
        while True:
            try:
                reserved = self.meter.reserve(bound, max_tokens)
            except BudgetExhaustedError as error:
                raise _with(error, spent) from None
            used = reserved
            try:
                outcome = self._request(sent, dialect.arguments(name, schema, max_tokens), reserved)
                used = outcome.usage
            finally:
                self.meter.settle(reserved, used)
            spent += used
            if outcome.reply is not None:
                self._dialect = dialect
                return replace(outcome.reply, usage=spent)
            if outcome.refusal is not None:
                changed = dialect.after(outcome.refusal)
                if changed is None:
                    raise _with(ModelRefusedError(f"the language model refuses a request ({outcome.failure})"), spent)
                dialect = changed
                continue
            failures += 1
            if failures >= self._attempts or not outcome.again:
                said = f"the language model does not answer ({outcome.failure}); check {PREFIX}LLM_URL"
                raise _with(ModelUnavailableError(said), spent)
            self._sleep(outcome.wait if outcome.wait is not None else 2.0 ** (failures - 1))

    def _request(self, messages: Any, arguments: dict[str, Any], reserved: Usage) -> "Outcome":
        import openai

        try:
            raw = self._client.chat.completions.create(model=self._model, messages=messages, **arguments)
        except (openai.APIError, ValueError) as error:
            return failure_of(error, reserved, f"{PREFIX}LLM_MODEL")
        return self._read(raw, reserved)

    def _read(self, raw: Any, reserved: Usage) -> "Outcome":
        """A reply with its usage; a server that does not count is charged what was reserved."""
        try:
            choice = raw.choices[0]
            text, finish, counted = choice.message.content or "", choice.finish_reason, raw.usage
        except (AttributeError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            return Outcome(usage=reserved, failure="the reply is no chat completion")
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate could not be sent back
        usage = reserved
        tokens = getattr(counted, "prompt_tokens", None), getattr(counted, "completion_tokens", None)
        if isinstance(tokens[0], int) and isinstance(tokens[1], int):
            usage = self.meter.usage(max(0, tokens[0]), max(0, tokens[1]))
        return Outcome(usage=usage, reply=Reply(text, finish == "length", usage))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one request: a ``reply``, or a ``refusal`` (in its words), or a ``failure`` that may be tried ``again``."""

    usage: Usage
    reply: Reply | None = None
    refusal: str | None = None
    failure: str = ""
    again: bool = True
    wait: float | None = None


def failure_of(error: Exception, reserved: Usage, setting: str) -> Outcome:
    """What a request's error means; ``setting`` names the model. An HTTP error is not billed: the request is counted.

    Raises SettingError for a wrong key, model or address."""
    import openai

    if not isinstance(error, openai.APIStatusError):
        unsent = type(error.__cause__).__name__ in _UNSENT
        return Outcome(usage=Usage(1) if unsent else reserved, failure=type(error).__name__)
    status, usage, failure = error.status_code, Usage(1), f"HTTP {error.status_code}"
    if status in (401, 403):
        raise SettingError(f"the language model refuses the key ({failure}); check {PREFIX}LLM_API_KEY") from None
    if status == 404:
        raise SettingError(f"no such model or address ({failure}); check {setting}, {PREFIX}LLM_URL") from None
    if status in (408, 409, 429) or status >= 500:
        again = error.code != "insufficient_quota"
        return Outcome(usage=usage, failure=failure, again=again, wait=_retry_after(error.response.headers))
    return Outcome(usage=usage, refusal=str(error).lower(), failure=failure)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header; None without one, or for a date or nonsense."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(LONGEST_WAIT, seconds) if seconds >= 0 else None


def _with(error: _Failure, usage: Usage) -> _Failure:
    error.usage = usage
    return error


def client(url: str, api_key: str, timeout_seconds: float) -> "openai.OpenAI":
    """A client without retries of its own, and with nothing from the environment."""
    try:
        import openai
    except ImportError:
        raise SettingError(
            f"{PREFIX}LLM_URL needs the package openai (in the extra memory-pipelines[platform])"
        ) from None
    client = openai.OpenAI(
        base_url=url,
        api_key=api_key or "none",  # a server without keys; the package insists on one
        admin_api_key="",
        timeout=timeout_seconds,
        max_retries=0,
    )
    client.organization = client.project = None  # the package takes them from the environment
    return client


def load_chat_model(settings: Settings, sleep: Callable[[float], None] = time.sleep) -> ChatModel | None:
    """The model of the settings with a new meter: one per run. None without an endpoint."""
    if not settings.llm_url:
        return None
    prices = settings.llm_price_per_1k_in, settings.llm_price_per_1k_out
    if settings.llm_max_cost_per_run and not any(prices):
        raise SettingError(f"{PREFIX}LLM_MAX_COST_PER_RUN needs {PREFIX}LLM_PRICE_PER_1K_IN and _OUT")
    meter = CostMeter(settings.llm_max_tokens_per_run, settings.llm_max_cost_per_run, *prices)
    return ChatModel(
        url=settings.llm_url, model=settings.llm_model, api_key=settings.llm_api_key, meter=meter, sleep=sleep
    )
