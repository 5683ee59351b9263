"""Readable text, and the named rules that drop a row."""

import pytest
from exchange_world import reply, table, turn
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.slices.clean import RULES, clean_text, clean_turns, filter_rule, repair_mojibake


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("  a \t b  ", "a b"),
        ("a\r\nb\rc\n\n \nd", "a\nb\nc\nd"),
        ("<p>包裹<br/>还没到</p><div class='x'>急</div>", "包裹\n还没到\n急"),
        ("a<script>1</script>b", "a 1 b"),
        ("a<!-- x -- > y -->b", "a b"),
        ("1 < 2 and 3 > 2, I <3 you", "1 < 2 and 3 > 2, I <3 you"),
        ("<张三>", "<张三>"),
        ("AT&amp;T &lt;b&gt; &nbsp;&#128512;", "AT&T <b> 😀"),
        ("零\u200b宽\ufeff\u2060\x07", "零宽"),
        ("１２３ＡＢＣａｂｃ，。", "123ABCabc，。"),
        ("e\u0301", "é"),
        ("😂👍🏽 👨\u200d👩\u200d👧 ❤\ufe0f", "😂👍🏽 👨\u200d👩\u200d👧 ❤\ufe0f"),
        ("全角\u3000空格\u00a0x", "全角 空格 x"),
    ],
)
def test_readable_text(text: str, expected: str) -> None:
    assert clean_text(text) == expected


@pytest.mark.parametrize("text", ["包裹还没到", "café", "naïve “quotes” – dash", "价格 €5 😀", "àèìòù ÀÈÌ"])
def test_mojibake_is_read_right(text: str) -> None:
    raw = text.encode()
    broken = "".join(bytes([b]).decode("cp1252") if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(b) for b in raw)
    assert repair_mojibake(broken) == text
    assert repair_mojibake(text) == text


@pytest.mark.parametrize("text", ["Ã", "São Paulo", "Ça va", "Ã¤ 你好", "â‚¬ and \ud83d"])
def test_what_is_no_mojibake_stays(text: str) -> None:
    assert repair_mojibake(text) == text


@given(st.text(max_size=80))
def test_any_text_is_readable_text(text: str) -> None:
    made = clean_text(text)
    assert "\x00" not in made
    assert "\r" not in made
    assert made == made.strip()
    assert all(line == line.strip() != "" for line in made.split("\n") if made)
    filter_rule("agent", made)


@pytest.mark.parametrize(
    ("role", "text", "rule"),
    [
        ("system", "anything", "system_row"),
        ("system", "", "system_row"),
        ("user", "", "empty"),
        ("user", "[heartbeat]", "heartbeat"),
        ("agent", "PONG", "heartbeat"),
        ("user", "心跳", "heartbeat"),
        ("user", "keep-alive", "heartbeat"),
        ("user", "my heartbeat is fast", None),
        ("user", "心跳很快", None),
        ("user", "[event] page_view /cart", "tracking_event"),
        ("user", "埋点: click", None),
        ("user", "[埋点] click", "tracking_event"),
        ("user", "Page_View /cart", "tracking_event"),
        ("user", '{"event": "click",\n "x": 1}', "tracking_event"),
        ("user", "utm_source=ads", "tracking_event"),
        ("user", "track my parcel please", None),
        ("user", "[orders] where are they", None),
        ("agent", "【自动回复】您好，客服繁忙", "automatic_reply"),
        ("agent", "自動回覆：稍後回覆您", "automatic_reply"),
        ("agent", "此消息由系统自动发送，请勿回复", "automatic_reply"),
        ("agent", "运费券由系统自动补偿，下月初到账", None),
        ("agent", "This is an automated reply.", "automatic_reply"),
        ("agent", "All of our agents are currently busy", "automatic_reply"),
        ("user", "你们只会自动回复吗", None),
        ("agent", "您的包裹在路上", None),
        ("agent", "x" * 401 + "自动回复", None),
    ],
)
def test_rules(role: str, text: str, rule: str | None) -> None:
    assert filter_rule(role, text) == rule


def test_rows_in_are_rows_out_and_filtered() -> None:
    rows = [
        turn("a", text="<b>你好</b>"),
        reply("b", 1, text="自动回复"),
        turn("c", text="ping"),
        turn("d", text="\u200b"),
        turn("e", role="system"),
        turn("f", text="<br>"),
    ]
    made = clean_turns(table(rows))
    assert made.turns["text"].to_pylist() == ["你好"]
    assert made.filtered == {"automatic_reply": 1, "empty": 2, "heartbeat": 1, "system_row": 1}
    assert made.turns.schema == table(rows).schema
    assert {k: v for k, v in made.turns.to_pylist()[0].items() if k != "text"} == {
        k: v for k, v in table(rows).to_pylist()[0].items() if k != "text"
    }


def test_no_rows() -> None:
    made = clean_turns(table([]))
    assert (made.turns.num_rows, made.filtered) == (0, {})


def test_the_first_rule_that_holds_counts() -> None:
    assert [name for name, _ in RULES] == [
        "system_row",
        "unchosen_branch",
        "empty",
        "heartbeat",
        "tracking_event",
        "automatic_reply",
    ]


def test_a_long_text_is_read_in_one_go() -> None:
    assert clean_text("<" * 200_000) == "<" * 200_000
    assert clean_text("<a" * 100_000) == "<a" * 100_000
    assert clean_text("<!--" * 200_000) == "<!--" * 200_000
    assert clean_text("<!-- a\nb -->c<!---->") == "c"
    assert len(clean_text("客服。" * 300_000)) == 900_000
