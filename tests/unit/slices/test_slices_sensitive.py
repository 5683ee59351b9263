"""Sensitive fields: what is one, what only looks like one, and tokens in their place. All values are made up."""

import pytest
from exchange_world import reply, table, turn
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.model import Owner
from memory_pipelines.slices.sensitive import find_sensitive, hide_sensitive, luhn, replaced
from memory_pipelines.stores.fakes import MemoryVault
from memory_pipelines.stores.vault import KINDS, Secret, bare, has_token, revealed, token, tokens, uncut, untagged

FOUND = [
    ("我的手机号是13812345678", "phone 13812345678"),
    ("电话138 1234 5678，谢谢", "phone 13812345678"),
    ("1381-234-5678", "phone 13812345678"),
    ("+86 138-1234-5678", "phone 13812345678"),
    ("打8613812345678或008613987654321", "phone 13812345678, phone 13987654321"),
    ("电话：13812345678，备用13987654321", "phone 13812345678, phone 13987654321"),
    ("13812345678/13987654321", "phone 13812345678, phone 13987654321"),
    ("座机0755-12345678", "phone 075512345678"),
    ("(010)8234 5678", "phone 01082345678"),
    ("010 82345678转801", "phone 01082345678"),
    ("+86 755 82345678", "phone 075582345678"),
    ("打给0912-345-678", "phone 0912345678"),
    ("call me at (415) 555-2671", "phone 4155552671"),
    ("415-555-2671", "phone 4155552671"),
    ("my cell is 4155552671", "phone 4155552671"),
    ("+1 415 555 2671", "phone 4155552671"),
    ("1-415-555-2671", "phone 4155552671"),
    ("+44 20 7946 0958", "phone +442079460958"),
    ("+442079460958", "phone +442079460958"),
    ("phone: 020 7946 0958", "phone 02079460958"),
    ("new phone, use 07700 900379 now", "phone 07700900379"),
    ("call 13812345678 about order 4055512345", "phone 13812345678"),
    ("订单20240517001的收件人电话13812345678", "phone 13812345678"),
    ("身份证11010519491231002X", "id_card 11010519491231002X"),
    ("11010519491231002x", "id_card 11010519491231002X"),
    ("身份证号 110105 19491231 002x", "id_card 11010519491231002X"),
    ("身份证号：110105194912310021", "id_card 110105194912310021"),
    ("my ID card number is 130503670401001", "id_card 130503670401001"),
    ("卡号 6222 0212 3456 7890 128", "bank_card 6222021234567890128"),
    ("4111 1111 1111 1111", "bank_card 4111111111111111"),
    ("4111-1111-1111-1111", "bank_card 4111111111111111"),
    ("pay with 4012888888881881 please", "bank_card 4012888888881881"),
    ("3782 822463 10005", "bank_card 378282246310005"),
    ("4111 1111 1111 1111 138 1234 5678", "bank_card 4111111111111111, phone 13812345678"),
    ("银行卡号6222021234567890123", "bank_card 6222021234567890123"),
    ("write to John.Doe+x@Example.co.uk.", "email john.doe+x@example.co.uk"),
    ("邮箱zhang_san@qq.com谢谢", "email zhang_san@qq.com"),
    ("a@b.com,c@d.org", "email a@b.com, email c@d.org"),
    ("密码是abc123，别忘了", "password abc123"),
    ("密码：Passw0rd!", "password Passw0rd"),
    ("密码123456", "password 123456"),
    ("密码改成“qwe!23”了", "password qwe!23"),
    ("密码是13812345678", "password 13812345678"),
    ("我的密码是我女儿的生日", "password 我女儿的生日"),
    ("密码提示是我家狗的名字", "password 我家狗的名字"),
    ("my password is hunter2", "password hunter2"),
    ("My password is swordfish.", "password swordfish"),
    ("password: correct-horse", "password correct-horse"),
    ("my password hint is first dog", "password first dog"),
    ("my password is my dog's name", "password my dog's name"),
    ("密码提示问题的答案是老家的地名", "password 老家的地名"),
    ("the answer to my security question is my first teacher.", "password my first teacher"),
    ("密码忘了，之前设的是Lamp_tree77", "password Lamp_tree77"),
    ("PIN 1234", "password 1234"),
    ("my pin is 4321", "password 4321"),
    ("验证码 482913", "code 482913"),
    ("482913是您的验证码", "code 482913"),
    ("482913 is your verification code", "code 482913"),
    ("verification code: 482 913", "code 482913"),
    ("the OTP is 48291", "code 48291"),
    ("cvv 123", "code 123"),
    ("您的動態碼是482913", "code 482913"),
    ("authentication code 482913", "code 482913"),
    ("one-time passcode: 482913", "password 482913"),
    ("短信碼482913", "code 482913"),
]

NOT_FOUND = [
    "订单号13812345678",
    "订单号：4111111111111111",
    "运单号是 13812345678",
    "快递单号13812345678到哪了",
    "order number 4111 1111 1111 1111",
    "order #13812345678",
    "tracking no. 6222021234567890128",
    "order 11010519491231002X",
    "编号110105194912310021",
    "YT1381234567890",
    "YT-13812345678",
    "SF1381234567890",
    "110105194912310021",
    "199905194912310026",
    "110105194913310021",
    "6222021234567890123",
    "4111111111111112",
    "0000 0000 0000 0000",
    "1234567890123",
    "1715932800123",
    "2024051712345678901",
    "2024-05-17 08:12:30",
    "2024.05.17-2024.06.18",
    "phone 2024-05-17",
    "手机 2024-05-17 买的",
    "手机12345678元",
    "金额13812.45元",
    "13812345678.50元",
    "I paid $1,234,567.89",
    "门牌号 1301 号 3 栋 2 单元",
    "15:30-16:45",
    "400-820-8820",
    "https://shop.example/13812345678.html?id=13812345678",
    "what my password is.,forgotten",
    "my passcode was denied",
    "entering your password: use it",
    "connect my password to the router",
    "1-800-555-0199",
    "978-7-111-21382-6",
    "192.168.100.1000",
    "3.14159265358979",
    "No. 1000000000",
    "+10000000 points",
    "手机号不对，打电话3次了",
    "@张三 你好",
    "a@b",
    "密码错误",
    "忘记密码了",
    "密码是什么",
    "密码是多少？",
    "密码是6-16位",
    "密码2024年改的",
    "密码是我生日吗",
    "my password is wrong",
    "my password is not working",
    "password is required",
    "the password is being reset",
    "reset password 3 times",
    "I changed my password to something else",
    "password reset link",
    "pin it on the wall",
    "验证码收不到",
    "验证码60秒",
    "code SAVE2024",
    "account is 20 years old",
]


def shown(text: str) -> str:
    return ", ".join(f"{field.kind} {field.value}" for field in find_sensitive(text))


@pytest.mark.parametrize(("text", "fields"), FOUND)
def test_what_is_sensitive(text: str, fields: str) -> None:
    assert shown(text) == fields


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_is_not(text: str) -> None:
    assert shown(text) == ""


@pytest.mark.parametrize(("text", "fields"), FOUND)
def test_landing_looks_at_every_text_that_holds_a_field(text: str, fields: str) -> None:
    made = hide_sensitive(table([turn("1", 0, text=text)]), MemoryVault())
    assert len(tokens(made["text"][0].as_py())) == fields.count(", ") + 1


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1",
            "1 ",
            "138",
            "13812345678 ",
            "a@",
            "a",
            "a.",
            "a@a.",
            "(",
            "+1 ",
            "pin ",
            "6222 ",
            "[phone:",
            "-",
            "0755-",
        ),
        *("密码", "密码是", "密码是我", "密码忘了之前设的", "password is ", "password is my aaa ", "otp code is "),
        *("电话", "phone number is ", "订单号 ", "1234是您的", "security question "),
    ],
)
def test_a_megabyte_of_anything_is_read_through(text: str) -> None:
    find_sensitive(text * (1_000_000 // len(text)))


PIECES = st.sampled_from(
    [
        *("13812345678", "11010519491231002X", "4111111111111111", "a@b.com", "密码是abc123", "订单号", "+1", " ", "-"),
        *(
            "[phone:abcdefghijkm]",
            "[phone]",
            "是",
            "0755-82345678",
            "验证码 4829",
            "\n",
            "我",
            "9",
            "x",
            "(415) 555-2671",
        ),
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=60))
def test_fields_lie_apart_and_nothing_is_found_twice(text: str) -> None:
    fields = find_sensitive(text)
    ends = [0, *(field.end for field in fields)]
    assert all(end <= field.start < field.end <= len(text) for end, field in zip(ends, fields, strict=False))
    assert all(field.kind in KINDS and field.value for field in fields)
    names = [token(field.kind, bytes(range(i, i + 8))) for i, field in enumerate(fields)]
    made = replaced(text, fields, names)
    assert all(name in made for name in names)
    assert hide_sensitive(table([turn("1", text=text)]), MemoryVault())["text"][0].as_py().count("[") == made.count("[")
    written = {name: text[field.start : field.end] for name, field in zip(names, fields, strict=True)}
    assert revealed(made, written) == text


def test_luhn() -> None:
    assert luhn("4111111111111111")
    assert not luhn("4111111111111121")


# ---- tokens in a table of turns

ANN, BOB = "u:ann", "u:bob"


def test_the_same_value_of_one_person_has_one_token_however_written() -> None:
    vault = MemoryVault()
    turns = [turn("1", 0, text="电话13812345678"), turn("2", 1, text="call 138-1234-5678 ok")]
    first, second = hide_sensitive(table(turns), vault)["text"].to_pylist()
    assert tokens(first) == tokens(second)
    assert "1381" not in first + second
    assert second.startswith("call [phone:")


def test_a_reply_that_names_nobody_keeps_nothing() -> None:
    vault = MemoryVault()
    made = hide_sensitive(table([reply("1", 0, text="we call 13812345678 or write to a@b.com")]), vault)
    assert made["text"].to_pylist() == ["we call [phone] or write to [email]"]
    assert vault.reveal({Owner("t", ANN): {bare("phone")}}) == {Owner("t", ANN): {}}


def test_a_table_without_fields_is_left_as_it_is() -> None:
    turns = table([turn("1", 0, text="订单号13812345678"), turn("2", 1, text="hi")])
    assert hide_sensitive(turns, MemoryVault()) is turns
    assert hide_sensitive(turns.slice(0, 0), MemoryVault()).num_rows == 0


def test_a_token_that_was_typed_is_text() -> None:
    """Nobody gets another's value by typing its token, and its letters are not read as a number."""
    vault, ann, bob = MemoryVault(), Owner("t", ANN), Owner("t", BOB)
    [stolen] = vault.keep([Secret(ann, "phone", "13812345678")]).values()
    assert find_sensitive(f"密码是{stolen} {stolen}") == []
    typed = table([turn("1", 0, text=f"my number is {stolen}")])
    assert hide_sensitive(typed, vault)["text"].to_pylist() == [f"my number is {stolen}"]
    assert vault.reveal({bob: {stolen}}) == {bob: {}}


# ---- the form of a token


@given(st.sampled_from(KINDS), st.binary(min_size=8, max_size=24))
def test_a_token_is_found_again_and_holds_no_field(kind: str, bits: bytes) -> None:
    name = token(kind, bits)
    assert tokens(f"x{name}y") == {name}
    assert untagged(f"x{name}y") == f"x{bare(kind)}y"
    assert find_sensitive(name) == []
    assert token(kind, bits[:8]) == name


@given(st.sampled_from(KINDS), st.binary(min_size=8, max_size=8), st.integers(0, 40))
def test_a_text_that_is_cut_ends_in_no_half_token(kind: str, bits: bytes, length: int) -> None:
    text = f"我的 {token(kind, bits)} 是 [x] a"
    made = uncut(text[:length])
    assert text.startswith(made)
    assert not has_token(made) or tokens(made)
    assert len(made) > len(text[:length]) - len(token(kind, bits))


def test_only_known_tokens_are_revealed() -> None:
    one, two = token("phone", bytes(8)), token("phone", bytes([255] * 8))
    assert revealed(f"{one} {two}", {one: "13812345678"}) == f"13812345678 {two}"
    assert revealed("[phone] [x:y]", {one: "1"}) == "[phone] [x:y]"
    assert revealed(one, {one: r"\1 [phone]"}) == r"\1 [phone]"
