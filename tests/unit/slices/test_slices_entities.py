"""Step 4: canonical entities of Chinese, English and mixed texts; generic words are none."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.slices.entities.find import Entity, extract
from memory_pipelines.tables import ENTITY

AT = datetime(2024, 5, 17, 8, 12, tzinfo=UTC)  # a Friday

CASES = [
    ("顺丰快递在深圳仓卡了三天", ["carrier/sf_express", "warehouse/shenzhen"]),
    ("順豐速運太慢了", ["carrier/sf_express"]),
    ("SF Express lost my package, order #A88231", ["carrier/sf_express", "order_number/A88231"]),
    ("包裹停在武汉分拨中心", ["warehouse/wuhan_hub"]),
    ("the parcel is at the Shenzhen warehouse", ["warehouse/shenzhen"]),
    ("stuck in the warehouse in Shanghai", ["warehouse/shanghai"]),
    ("华南仓发货的吗", ["warehouse/south_china"]),
    ("订单202405170001什么时候到", ["order_number/202405170001"]),
    ("快递单号：SF1234567890123", ["order_number/SF1234567890123"]),
    ("tracking number 1Z999AA10123456784", ["order_number/1Z999AA10123456784"]),
    ("我叫张三，住在杭州", ["person/张三", "place/hangzhou"]),
    ("我叫张三今年三十岁", ["person/张三"]),
    ("我女儿叫果果", ["person/果果"]),
    ("收货人改成李明", ["person/李明"]),
    ("请问王医生在吗", ["person/王医生"]),
    ("和小李去爬山", ["person/小李"]),
    ("my daughter Emma is allergic to peanuts", ["person/emma"]),
    ("My name is John Smith and I live in Boston", ["person/john_smith", "place/boston"]),
    ("Thanks, Melanie! It was great", ["person/melanie"]),
    ("我在北京字节跳动科技有限公司上班", ["company/bytedance"]),
    ("I work at Acme Robotics in Seattle", ["company/acme_robotics", "place/seattle"]),
    ("我想买iPhone 15 Pro和华为耳机", ["product/iphone", "brand/huawei", "product/headphones"]),
    ("苹果手机坏了", ["product/iphone"]),
    ("UPS delivered it", ["carrier/ups"]),
    ("顺丰 delivered my headphones to 上海", ["carrier/sf_express", "product/headphones", "place/shanghai"]),
    ("搬到幸福小区", ["place/幸福小区"]),
    ("明天提醒我", ["date/2024-05-18"]),
    ("I went to Sweden last month with Tom", ["place/sweden", "date/2024-04", "person/tom"]),
]
NOTHING = [
    "", "a", "。", "😀", "客服态度太差，系统崩溃", "customer service is bad and the app crashed", "快递员不送货上门",
    "我喜欢吃苹果", "apple pie is nice", "ups and downs", "I'm Happy to help", "Hi there", "跟老师说一下",
    "大理石桌面", "去超市买东西", "我叫外卖", "联系电话12345678901", "We May Go",
]  # fmt: skip


@pytest.mark.parametrize(("text", "canonical"), CASES)
def test_canonical_ids(text: str, canonical: list[str]) -> None:
    assert [entity.canonical for entity in extract(text, AT)] == canonical


@pytest.mark.parametrize("text", NOTHING)
def test_generic_words_are_no_entities(text: str) -> None:
    assert extract(text, AT) == ()


def test_surfaces_are_as_written_and_each_id_comes_once() -> None:
    assert extract("順豐很慢，顺丰速运真的慢", AT) == (Entity("順豐", "carrier/sf_express", "carrier"),)


def test_relative_dates_follow_the_event_time_not_the_clock() -> None:
    later = AT + timedelta(days=400)
    assert [e.canonical for e in extract("明天", AT)] == ["date/2024-05-18"]
    assert [e.canonical for e in extract("明天", later)] == ["date/2025-06-22"]
    # 02:00 in Shanghai is still the day before in UTC
    assert (
        extract("今天", datetime(2024, 5, 18, 2, tzinfo=timezone(timedelta(hours=8))))[0].canonical == "date/2024-05-17"
    )


def test_a_huge_text_is_read_to_its_cap() -> None:
    found = extract("顺丰" + "很慢" * 500_000 + "京东", AT)
    assert [entity.canonical for entity in found] == ["carrier/sf_express"]
    assert len(extract("深圳仓明天" * 20_000, AT)) == 2


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60) | st.lists(st.sampled_from([case[0] for case in CASES]), max_size=4).map("，".join))
def test_surfaces_are_substrings_of_known_kinds(text: str) -> None:
    kinds = {"person", "company", "carrier", "warehouse", "place", "product", "brand", "order_number", "date"}
    found = extract(text, AT)
    for entity in found:
        assert entity.kind in kinds
        assert entity.canonical.startswith(entity.kind + "/")
        assert entity.surface in text
    assert len({entity.canonical for entity in found}) == len(found)
    assert {field.name for field in ENTITY} == set(Entity.__slots__)
