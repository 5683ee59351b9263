"""LAC's words: what is read, and that they depend on their own sentence alone."""

import itertools

from memory_pipelines.slices.entities.lexical import MAX_SENTENCE, words


def cut(text: str) -> list[tuple[str, str]]:
    return [(text[start:end], tag) for start, end, tag in words(text)]


def test_names_have_tags_of_their_own() -> None:
    assert ("张三", "PER") in cut("张三在北京市工作")
    assert ("北京市", "LOC") in cut("张三在北京市工作")


def test_words_of_a_sentence_do_not_depend_on_its_neighbours() -> None:
    one, other = "张三在北京市工作。", "李四买了小米电视！"
    assert cut(one + other) == cut(one) + cut(other)
    assert cut(other + one + other)[-len(cut(other)) :] == cut(other)


def test_only_chinese_is_read() -> None:
    assert cut("") == cut("the parcel is late") == cut("12345 😀") == []
    assert [word for word, _ in cut("the parcel is in 上海 now please")] == [" ", "上海", " "]


def test_a_text_without_ends_of_sentences_is_read_in_pieces() -> None:
    text = "我在北京" * 200
    found = words(text)
    assert found[0].start == 0
    assert found[-1].end == len(text)
    assert all(one.end == other.start for one, other in itertools.pairwise(found))
    assert max(word.end - word.start for word in found) <= MAX_SENTENCE
