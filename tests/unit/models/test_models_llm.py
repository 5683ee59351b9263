"""The chat client against a scripted OpenAI-compatible server: retries, dialects, the budget, what is never said."""

import socket
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suites.llm_server import PROMPT_TOKENS, REPLY_TOKENS, Answer, LlmServer, serving

from memory_pipelines.errors import SettingError
from memory_pipelines.models.llm import (
    MESSAGE_OVERHEAD,
    BudgetExhaustedError,
    ChatModel,
    CostMeter,
    Message,
    ModelRefusedError,
    ModelUnavailableError,
    Usage,
    load_chat_model,
    token_bound,
)
from memory_pipelines.settings import Settings

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
MESSAGES = [Message("system", "rules"), Message("user", "数据 🙂")]
BOUND = token_bound(["rules", "数据 🙂", str(SCHEMA)]) + 3 * MESSAGE_OVERHEAD


class Client:
    """A chat model of a scripted server; ``waits`` are the sleeps that it asked for."""

    def __init__(self, server: LlmServer, meter: CostMeter | None = None, **options: Any) -> None:
        self.waits: list[float] = []
        self.meter = meter or CostMeter(1_000_000)
        self.model = ChatModel(url=server.url, model="m", meter=self.meter, sleep=self.waits.append, **options)

    def ask(self, max_tokens: int = 200) -> Any:
        return self.model.complete(MESSAGES, name="thing", schema=SCHEMA, max_tokens=max_tokens)


def test_a_reply_with_its_cost() -> None:
    with serving([Answer('{"a": "好"}')]) as server:
        client = Client(server, CostMeter(10_000, 1.0, 0.5, 2.0), api_key=" secret\n")
        reply = client.ask()
    assert (reply.text, reply.truncated) == ('{"a": "好"}', False)
    assert reply.usage == Usage(1, 100, 50, 0.15)  # 100 · 0.5 / 1000 + 50 · 2 / 1000
    assert client.meter.spent == reply.usage
    sent = server.requests[0]
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("m", 200, 0)
    assert sent["messages"] == [{"role": "system", "content": "rules"}, {"role": "user", "content": "数据 🙂"}]
    described = {"name": "thing", "strict": True, "schema": SCHEMA}
    assert sent["response_format"] == {"type": "json_schema", "json_schema": described}
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_only_the_settings_say_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-another-provider")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with serving([Answer()]) as server:
        Client(server).ask()
    assert "of-another-provider" not in server.headers[0].values()
    assert server.headers[0]["authorization"] == "Bearer none"


def test_429_waits_as_long_as_it_is_told() -> None:
    with serving([Answer(status=429, headers={"Retry-After": "7"}), Answer("{}")]) as server:
        client = Client(server)
        reply = client.ask()
    assert client.waits == [7.0]
    assert reply.usage == Usage(2, 100, 50, 0.0)  # an error is not billed


@pytest.mark.parametrize(
    ("header", "wait"),
    [("9999", 60.0), ("0.5", 0.5), ("-1", 1.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 1.0), ("nan", 1.0)],
)
def test_what_retry_after_may_say(header: str, wait: float) -> None:
    with serving([Answer(status=503, headers={"Retry-After": header}), Answer()]) as server:
        client = Client(server)
        client.ask()
    assert client.waits == [wait]


def test_500s_to_the_end() -> None:
    with serving([Answer(status=500)]) as server:
        client = Client(server)
        with pytest.raises(ModelUnavailableError, match=r"HTTP 500\); check MEMORY_PIPELINES_LLM_URL") as caught:
            client.ask()
    assert len(server.requests) == 4
    assert client.waits == [1.0, 2.0, 4.0]
    assert caught.value.usage == Usage(4)


def test_a_timeout_counts_as_if_it_were_billed() -> None:
    with serving([Answer(delay=1.0), Answer()]) as server:
        client = Client(server, timeout_seconds=0.2)
        reply = client.ask(max_tokens=200)
    assert len(server.requests) == 2
    assert reply.usage == Usage(2, BOUND + PROMPT_TOKENS, 200 + REPLY_TOKENS)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = Client(LlmServer(f"http://127.0.0.1:{port}/v1", []), attempts=2)
    with pytest.raises(ModelUnavailableError) as caught:
        client.ask()
    assert caught.value.usage == Usage(2)  # nothing was sent, nothing is billed
    assert client.waits == [1.0]


@pytest.mark.parametrize(
    "raw",
    [b"<html>gateway</html>", b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": [1]}}]}', b"\xff"],
)
def test_what_is_no_completion_is_tried_again(raw: bytes) -> None:
    with serving([Answer(raw=raw), Answer('{"b": 1}')]) as server:
        assert Client(server).ask().text == '{"b": 1}'


def test_a_server_that_does_not_count_is_charged_the_bound() -> None:
    with serving([Answer(usage=None)]) as server:
        assert Client(server).ask(max_tokens=30).usage == Usage(1, BOUND, 30)


def test_truncation_and_lone_surrogates() -> None:
    with serving([Answer("half \ud800", finish="length")]) as server:
        reply = Client(server).ask()
    assert reply.truncated
    assert reply.text == "half ?"


def test_a_used_up_quota_is_not_asked_again() -> None:
    quota = {"message": "pay first", "code": "insufficient_quota"}
    with serving([Answer(status=429, error=quota)]) as server:
        client = Client(server)
        with pytest.raises(ModelUnavailableError):
            client.ask()
    assert (len(server.requests), client.waits) == (1, [])


@pytest.mark.parametrize(("status", "setting"), [(401, "API_KEY"), (403, "API_KEY"), (404, "LLM_MODEL")])
def test_a_wrong_setting_is_named(status: int, setting: str) -> None:
    secret = {"message": "key sk-123 and the words of a person"}
    with serving([Answer(status=status, error=secret)]) as server:
        client = Client(server)
        with pytest.raises(SettingError, match=setting) as caught:
            client.ask()
    assert "sk-123" not in str(caught.value)
    assert caught.value.__suppress_context__
    client.meter.reserve(1_000_000 - client.meter.spent.tokens, 0)  # nothing stays reserved


def test_a_server_without_schemas_is_asked_in_plain_words_and_remembered() -> None:
    refusal = Answer(status=400, error={"message": "response_format is not supported"})
    with serving([refusal, refusal, Answer('{"c": 1}')]) as server:
        client = Client(server)
        assert client.ask().text == '{"c": 1}'
        client.ask()
    formats = [r.get("response_format", {}).get("type") for r in server.requests]
    assert formats == ["json_schema", "json_object", None, None]
    assert client.waits == []


def test_a_model_with_other_parameters() -> None:
    script = [
        Answer(status=400, error={"message": "Unsupported parameter: use 'max_completion_tokens' instead"}),
        Answer(status=400, error={"message": "'temperature' does not support 0"}),
        Answer(),
    ]
    with serving(script) as server:
        Client(server).ask(max_tokens=77)
    last = server.requests[-1]
    assert last["max_completion_tokens"] == 77
    assert not {"max_tokens", "temperature"} & last.keys()
    assert last["response_format"]["type"] == "json_schema"


def test_a_prompt_that_is_too_long_changes_nothing_for_the_next() -> None:
    long = Answer(status=400, error={"message": "maximum context length is 8192 tokens", "code": "x"})
    with serving([long, Answer()]) as server:
        client = Client(server)
        with pytest.raises(ModelRefusedError, match="HTTP 400") as caught:
            client.ask()
        client.ask()
    assert "context" not in str(caught.value)
    assert [r["response_format"]["type"] for r in server.requests] == ["json_schema"] * 2


def test_a_refusal_of_everything_ends() -> None:
    with serving([Answer(status=422)]) as server, pytest.raises(ModelRefusedError) as caught:
        Client(server).ask()
    assert len(server.requests) == 3
    assert caught.value.usage == Usage(3)


def test_nothing_is_sent_that_could_exceed_the_budget() -> None:
    with serving([Answer()]) as server:
        client = Client(server, CostMeter(BOUND + 200 + 2 * 150))
        client.ask(max_tokens=200)  # reserves BOUND + 200, costs 150
        client.ask(max_tokens=200)
        client.ask(max_tokens=200)
        with pytest.raises(BudgetExhaustedError, match="MEMORY_PIPELINES_LLM_MAX_TOKENS_PER_RUN") as caught:
            client.ask(max_tokens=200)
    assert len(server.requests) == 3
    assert client.meter.spent.tokens == 450
    assert caught.value.usage == Usage()


def test_a_retry_asks_the_budget_too() -> None:
    with serving([Answer(delay=1.0)]) as server:
        client = Client(server, CostMeter(BOUND + 200), timeout_seconds=0.2)
        with pytest.raises(BudgetExhaustedError) as caught:
            client.ask(max_tokens=200)
    assert len(server.requests) == 1
    assert caught.value.usage == Usage(1, BOUND, 200)


def test_money_is_a_budget_of_its_own() -> None:
    meter = CostMeter(10**9, 0.02, 0.01, 0.03)
    assert meter.reserve(1000, 300) == Usage(1, 1000, 300, 0.019)
    with pytest.raises(BudgetExhaustedError, match="MEMORY_PIPELINES_LLM_MAX_COST_PER_RUN"):
        meter.reserve(0, 34)  # .00102 more
    meter.settle(meter.usage(1000, 300), meter.usage(500, 100))
    assert meter.spent == Usage(1, 500, 100, 0.008)
    meter.reserve(0, 400)  # .012: to the last unit


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500), st.floats(0, 1), st.floats(0, 1)), max_size=30))
def test_what_is_spent_never_exceeds_the_limits(calls: list[tuple[int, int, float, float]]) -> None:
    meter = CostMeter(2_000, 1.0, 0.4, 0.7)
    for tokens_in, tokens_out, share_in, share_out in calls:
        try:
            reserved = meter.reserve(tokens_in, tokens_out)
        except BudgetExhaustedError:
            continue
        meter.settle(reserved, meter.usage(int(tokens_in * share_in), int(tokens_out * share_out)))
    assert meter.spent.tokens <= 2_000
    assert meter.spent.money <= 1.0


def test_many_threads_share_a_budget() -> None:
    meter, sent = CostMeter(1_000), []

    def work() -> None:
        for _ in range(50):
            try:
                reserved = meter.reserve(5, 5)
            except BudgetExhaustedError:
                return
            sent.append(1)
            meter.settle(reserved, meter.usage(5, 5))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sent) == 100
    assert meter.spent == Usage(100, 500, 500)


@pytest.mark.parametrize(("text", "bytes_"), [("", 0), ("abc", 3), ("数据", 6), ("🙂", 4), ("\ud800", 1)])
def test_the_bound_is_the_utf8_length(text: str, bytes_: int) -> None:
    assert token_bound([text, text]) == 2 * bytes_


def test_the_model_of_the_settings() -> None:
    assert load_chat_model(Settings()) is None
    with serving([Answer()]) as server:
        chosen = {"llm_url": server.url, "llm_model": "small", "llm_api_key": "k", "llm_max_tokens_per_run": 5_000}
        prices = {"llm_price_per_1k_in": 1.0, "llm_price_per_1k_out": 2.0, "llm_max_cost_per_run": 3.0}
        model = load_chat_model(Settings(**chosen, **prices))
        assert model is not None
        reply = model.complete(MESSAGES, name="t", schema=SCHEMA, max_tokens=10)
    assert reply.usage.money == 0.2
    assert server.requests[0]["model"] == "small"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"llm_url": "localhost:8000", "llm_model": "m"}, "LLM_URL must start with http"),
        ({"llm_url": "http://h/v1"}, "LLM_MODEL must name a model"),
        ({"llm_url": "http://h/v1", "llm_model": "m", "llm_max_cost_per_run": 1.0}, "LLM_PRICE_PER_1K_IN"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        load_chat_model(Settings(**settings))


@pytest.mark.parametrize("name", ["max_tokens_per_run", "max_cost_per_run", "price_per_1k_in", "price_per_1k_out"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_budgets_are_numbers(name: str, value: float) -> None:
    with pytest.raises(SettingError, match=f"MEMORY_PIPELINES_LLM_{name.upper()}"):
        Settings(**{f"llm_{name}": value})
