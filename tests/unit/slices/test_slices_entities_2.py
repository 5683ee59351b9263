"""Second revision of the entities: what it mends of the first, by kinds, and what LAC adds."""

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from entity_world import ACCURATE, FAST, own_set
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import SettingError
from memory_pipelines.models.sets import ModelSet
from memory_pipelines.slices.entities.find import extract
from memory_pipelines.slices.entities.tagger import Span
from memory_pipelines.slices.entities.tagger_training import Row, train
from memory_pipelines.slices.resources import Named

AT = datetime(2024, 5, 17, 8, 12, tzinfo=UTC)  # a Friday


def ids(text: str, model_set: Named = FAST) -> list[str]:
    return [entity.canonical for entity in extract(text, AT, model_set)]


POSTCODES = [
    ("邮编518000，寄到深圳", ["place/shenzhen"]),
    ("邮政编码是 100020", []),
    ("my zip code is 94107", []),
    ("postcode: 90210", []),
    ("ship to Boston, MA 02134 please", ["place/boston"]),
    ("send it to Springfield, IL 62701-1234", ["place/springfield"]),
    ("order #12345 to apt #54321", ["order_number/12345"]),
    ("the package for room 10305", []),
    ("取件码 12345678 订单", []),
]
AMOUNTS = [
    ("订单15000元的发票", []),
    ("订单金额12000，还没退", []),
    ("订单10000件", []),
    ("order 12000 bottles of water", []),
    ("I paid for order 15000 dollars", []),
    ("an order over 20000 was promised", []),
    ("order 1500.50 refunded", []),
    ("order 2024-05-17 arrived", ["date/2024-05-17"]),
    ("订单号 15000123 还没到", ["order_number/15000123"]),
    ("my order 90210 is late", ["order_number/90210"]),
    ("order 123456 has two items", ["order_number/123456"]),
    ("运单号SF1234567890123", ["order_number/SF1234567890123"]),
    ("ＳＦ１２３４５６７８９０１２３", ["order_number/SF1234567890123"]),
    ("tracking number 1Z999AA10123456784", ["order_number/1Z999AA10123456784"]),
]
TOKENS = [
    ("call me at [phone:7f3k9a2c4d5e]", []),
    ("订单[phone:23456789abcd]没到", []),
    ("order [code:234567892345]", []),
    ("order number is [bank_card]", []),
]
ORGANISATIONS = [
    ("太平洋保险的理赔太慢", ["company/cpic"]),
    ("我去太平洋游泳", ["place/pacific"]),
    ("北京银行卡丢了", ["company/bank_of_beijing"]),
    ("杭州日报报道了", ["company/杭州日报"]),
    ("我在武汉大学读书", ["place/武汉大学"]),
    ("东方航空和南方航空", ["company/china_eastern", "company/china_southern"]),
    ("works at Stanford University", ["place/stanford_university"]),
    ("a letter from the Ministry of Finance", ["company/ministry_of_finance"]),
]
PEOPLE = [
    ("张北京说他明天来", ["person/张北京", "date/2024-05-18"]),
    ("我同事张北京让我代收", ["person/张北京"]),
    ("从北京到上海", ["place/beijing", "place/shanghai"]),
    ("位于北京", ["place/beijing"]),
    ("April said she would call me back", ["person/april"]),
    ("my sister May is coming", ["person/may"]),
    ("May I ask a question", []),
    ("I told May 3 times", ["person/may"]),
    ("I met April 5 years ago", ["person/april"]),
    ("arrives April 5", ["date/2025-04-05"]),
    ("Austin texted me from Austin", ["person/austin", "place/austin"]),
    ("I moved to Austin", ["place/austin"]),
    ("Paris Hilton went to Paris", ["person/paris_hilton", "place/paris"]),
    ("Will Smith said hi, I will mark it and bill you", ["person/will_smith"]),
    ("Hi Jordan, my shoes are late", ["person/jordan", "product/shoes"]),
    ("my friend Zhang Wei called", ["person/zhang_wei"]),
    ("Emma Watson and Peter like it", ["person/emma_watson", "person/peter"]),
    ("President Bill Clinton", ["person/bill_clinton"]),
    ("John W. Smith called", ["person/john_w._smith"]),
    ("Long Time No See", []),
    ("EMMA ORDERED SHOES", ["person/emma", "product/shoes"]),
]
SF = [
    ("the SF branch is closed", []),
    ("my parcel is at the SF branch", ["carrier/sf_express"]),
    ("I live in SF", ["place/san_francisco"]),
    ("SF快递到哪了", ["carrier/sf_express"]),
    ("sf is fine", []),
]
PLACES = [
    ("顺丰快递在深圳仓卡了三天", ["carrier/sf_express", "warehouse/shenzhen"]),
    ("包裹停在武汉分拨中心", ["warehouse/wuhan_hub"]),
    ("北京市朝阳区建国路88号", ["place/beijing", "place/chaoyang", "place/建国路88号"]),
    ("寄到中山路100号3栋", ["place/中山路100号"]),
    ("坐10号线到3号楼", []),
    ("deliver to 221 Baker Street", ["place/221_baker_street"]),
    ("北京路的店", []),
]
GENERIC = [
    "客服说系统坏了",
    "customer service never helps",
    "小哥说快递公司没人",
    "The Company is bad",
    "🎉😀",
    "",
    "我",
    "…",
    "a",
]


@pytest.mark.parametrize(("text", "expected"), POSTCODES + AMOUNTS + TOKENS + ORGANISATIONS + PEOPLE + SF + PLACES)
@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
def test_kinds_of_mistakes(text: str, expected: list[str], model_set: str) -> None:
    assert ids(text, model_set) == expected


@pytest.mark.parametrize("text", GENERIC)
@pytest.mark.parametrize("model_set", [FAST, ACCURATE])
def test_generic_words_and_no_words(text: str, model_set: str) -> None:
    assert ids(text, model_set) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("张三和李四去了腾讯公司", ["person/张三", "person/李四", "company/tencent"]),
        ("顾客张伟的手机", ["person/张伟", "product/phone"]),
        ("包裹在嘉定仓", ["warehouse/嘉定"]),
        ("公司在广州天河区珠江新城", ["place/guangzhou", "place/tianhe", "place/珠江新城"]),
        ("張偉在廣州", ["person/张伟", "place/guangzhou"]),
        ("小米电视坏了", ["brand/xiaomi", "product/tv"]),
        ("苹果手机和苹果很好吃", ["product/iphone"]),
        ("顺丰 delivered my headphones to 上海", ["carrier/sf_express", "product/headphones", "place/shanghai"]),
    ],
)
def test_lac_finds_names_without_a_cue(text: str, expected: list[str]) -> None:
    assert ids(text, ACCURATE) == expected


def test_the_first_revision_keeps_its_labels() -> None:
    assert [e.canonical for e in extract("订单15000元，张北京说", AT)] == ["order_number/15000", "place/beijing"]


def test_entities_do_not_depend_on_the_texts_around() -> None:
    texts = [case[0] for case in AMOUNTS + PEOPLE + PLACES + ORGANISATIONS]
    alone = {text: ids(text, ACCURATE) for text in texts}
    shuffled = random.Random(3).sample(texts * 2, 2 * len(texts))
    assert [ids(text, ACCURATE) for text in shuffled] == [alone[text] for text in shuffled]


def test_a_huge_text_is_read_to_its_cap() -> None:
    assert ids("顺丰" + "很慢" * 50_000 + "京东", ACCURATE) == ["carrier/sf_express"]
    assert ids("order " * 20_000, ACCURATE) == []
    assert ids("订单号12345678" + "路" * 100_000, FAST) == ["order_number/12345678"]


@settings(max_examples=100, deadline=None)
@given(
    st.text(max_size=40)
    | st.lists(st.sampled_from([c[0] for c in PEOPLE + PLACES + AMOUNTS]), max_size=3).map(" ".join)
)
def test_any_text_has_entities_of_known_kinds_and_its_own_surfaces(text: str) -> None:
    kinds = {"person", "company", "carrier", "warehouse", "place", "product", "brand", "order_number", "date"}
    for model_set in (FAST, ACCURATE):
        found = extract(text, AT, model_set)
        assert all(e.kind in kinds and e.canonical.startswith(f"{e.kind}/") and e.surface in text for e in found)
        assert len({e.canonical for e in found}) == len(found)


def own_dictionary(folder: Path, text: str) -> ModelSet:
    file = folder / "names.yaml"
    file.write_text(text, encoding="utf-8")
    return own_set(folder, dictionary=file.name)


def test_a_users_dictionary_adds_names_and_aliases(tmp_path: Path) -> None:
    own = own_dictionary(
        tmp_path, "product: {widget: Widget Pro|小部件}\ncarrier: {sf_express: 小黑车}\ngeneric: 小助手\n"
    )
    assert ids("小部件和widget pro都让小黑车送", own) == ["product/widget", "carrier/sf_express"]
    assert ids("小部件", FAST) == []


def test_a_changed_dictionary_is_read_anew(tmp_path: Path) -> None:
    assert ids("小部件", own_dictionary(tmp_path, "product: {widget: 小部件}")) == ["product/widget"]
    assert ids("小部件", own_dictionary(tmp_path, "product: {part: 小部件}")) == ["product/part"]


def test_a_users_tagger_finds_kinds_of_its_own(tmp_path: Path) -> None:
    texts = [f"请查一下{name}的进度" for name in ("青云计划", "赤兔计划", "白鹭计划", "玄武计划")]
    rows = [Row(text, (Span(4, 8, "project"),)) for text in texts] * 5
    file = tmp_path / "own.tagger"
    file.write_bytes(train(rows))
    assert ids("请查一下黑马计划的进度", own_set(tmp_path, tagger=file.name)) == ["project/黑马计划"]


def test_a_tagger_that_is_not_there_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="none"):
        own_set(tmp_path, tagger="none")


@pytest.mark.parametrize(
    "text", ["colour: {a: b}", "product: [a]", "product: {'a b': c}", "product: {a: ''}", "- a", "{"]
)
def test_a_dictionary_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    own = own_dictionary(tmp_path, text)
    with pytest.raises(SettingError):
        ids("x", own)
