"""The trained emotion head: same text, same label in any batch; training; its file. Embeddings are hashed n-grams."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory_pipelines.errors import IntegrityError, SettingError
from memory_pipelines.slices.emotion import head as emotion_head
from memory_pipelines.slices.emotion import kernel
from memory_pipelines.slices.emotion import score as emotion
from memory_pipelines.slices.emotion import training as emotion_training
from memory_pipelines.slices.emotion.head import Head, parse_head, read_head
from memory_pipelines.slices.emotion.score import EmotionLabel, Scorer
from memory_pipelines.slices.emotion.training import HEAD, LEXICON, Rows, own_rows, read_rows, train
from memory_pipelines.slices.emotion.words import load_lexicon

TEXTS = [
    "气死我了！快递又丢了", "好的", "OK", "I love it 😍", "😭", "", "a", "嗯", "[phone:7f3k9a2c]", "!!!",
    "TERRIBLE SERVICE", "質量太差了",
    "这个 delivery 太慢了 so disappointed", "我想查一下物流", "好" * 100_000, "nice " * 20_000, "12345",
    "\0", "明天见",
]  # fmt: skip


@pytest.fixture(scope="module")
def head() -> Head:
    return train(own_rows(), "hash")


@pytest.fixture(scope="module")
def scorer(head: Head) -> Scorer:
    return Scorer(load_lexicon(*LEXICON), head)


@pytest.fixture(scope="module")
def learnt() -> Head:
    """The same rows as if they were a user's: a kernel machine."""
    return train(replace(own_rows(), familiar=False), "hash")


@pytest.mark.parametrize("kind", ["head", "learnt"])
def test_the_same_text_has_the_same_label_in_any_batch(kind: str, request: pytest.FixtureRequest) -> None:
    scorer = Scorer(load_lexicon(*LEXICON), request.getfixturevalue(kind))
    texts = TEXTS + list(own_rows().texts[::9])
    whole = scorer.labels(texts)
    assert [scorer.labels([text])[0] for text in texts] == whole
    order = list(range(len(texts)))
    random.Random(3).shuffle(order)
    assert scorer.labels([texts[i] for i in order]) == [whole[i] for i in order]


def test_batches_longer_than_a_chunk_are_put_together(scorer: Scorer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scorer.labels(TEXTS)
    monkeypatch.setattr(emotion_head, "_CHUNK", 4)
    assert scorer.labels(TEXTS) == whole


def test_labels_are_in_range_and_texts_without_letters_are_the_fast_scorers(scorer: Scorer) -> None:
    for label in scorer.labels(TEXTS):
        assert -1 <= label.score <= 1
        assert label.score == round(label.score, 4)
        assert (label.label == "neutral") == (label.score == 0)
    bare = ["", "!!!", "😭", "[phone:7f3k9a2c]", "12345"]
    assert scorer.labels(bare) == Scorer(scorer.lexicon).labels(bare)


def test_a_model_set_with_a_head_labels_with_it(monkeypatch: pytest.MonkeyPatch, head: Head) -> None:
    files = {"lexicon": LEXICON[0], "more": LEXICON[1], "head": "trained"}
    monkeypatch.setattr(emotion, "label_files", lambda model_set, step: files)
    monkeypatch.setattr(emotion, "read_head", {"trained": head}.__getitem__)
    assert emotion.load_scorer.__wrapped__("any").head is head


def test_the_second_sets_score_as_their_files_say() -> None:
    assert emotion.load_scorer("base-2").lexicon.revision == 2
    assert emotion.load_scorer("base-2").head is None
    assert emotion.load_scorer("accurate-2").head is not None
    assert emotion.score("质量差", "base-2").score == -0.5
    assert emotion.score("质量差").score == -0.6325  # a released set never changes


def test_shouting_reads_like_speaking_to_the_embedding() -> None:
    assert emotion_head.readable("SO BAD") == "so bad"
    assert emotion_head.readable("So BAD") == "So BAD"
    assert emotion_head.readable("質量") == "质量"


def test_training_learns_what_the_lexicon_does_not_know() -> None:
    good, bad = [f"blorp {i} frim" for i in range(20)], [f"quab {i} frim" for i in range(20)]
    made = train(Rows(good + bad, [0.8] * 20 + [-0.8] * 20), "hash")
    found = Scorer(load_lexicon(*LEXICON), made).labels(["blorp 77 frim", "quab 77 frim"])
    assert found[0].score > 0.3
    assert found[1].score < -0.3
    assert [label.label.split(":")[0] for label in found] == ["joy", "frustration"]


def test_training_is_deterministic_and_survives_its_file(head: Head) -> None:
    again = train(own_rows(), "hash")
    assert again.bytes() == head.bytes()
    copy = parse_head(head.bytes())
    assert (copy.kinds, copy.model_id) == (head.kinds, head.model_id)
    assert np.array_equal(copy.vectors, head.vectors)
    assert np.array_equal(copy.ngrams, head.ngrams)


def test_a_head_of_a_users_rows_is_a_kernel_machine_and_survives_its_file(head: Head, learnt: Head) -> None:
    assert head.kernel is None
    assert learnt.kernel is not None
    assert learnt.vectors.shape == (0, 1 + len(learnt.kinds))
    copy = parse_head(learnt.bytes())
    assert copy.bytes() == learnt.bytes() == train(replace(own_rows(), familiar=False), "hash").bytes()
    rows = own_rows()
    found = Scorer(load_lexicon(*LEXICON), copy).labels(rows.texts)
    assert np.corrcoef([label.score for label in found], rows.scores)[0, 1] > 0.8
    with pytest.raises(IntegrityError, match="fit"):
        parse_head(replace(learnt, kernel=replace(learnt.kernel, coefficients=learnt.kernel.coefficients[1:])).bytes())
    other = replace(learnt, kernel=replace(learnt.kernel, parts=(replace(learnt.kernel.parts[0], model_id="another"),)))
    with pytest.raises(IntegrityError, match="another"):
        other.kernel.scores(["太差了"])


def test_of_many_rows_evenly_spaced_ones_are_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MOST_LANDMARKS", 100)
    made = train(replace(own_rows(), familiar=False), "hash")
    assert made.kernel is not None
    assert len(made.kernel.parts[0].rows) == len(own_rows().texts[::7]) <= 100


def test_a_head_of_another_embedder_is_refused(scorer: Scorer, head: Head) -> None:
    other = Scorer(scorer.lexicon, replace(head, model_id="another"))
    with pytest.raises(IntegrityError, match="another"):
        other.labels(["太差了"])


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04"])
def test_a_broken_file_is_refused(content: bytes) -> None:
    with pytest.raises(IntegrityError):
        parse_head(content)


def test_parts_that_do_not_fit_are_refused(head: Head) -> None:
    with pytest.raises(IntegrityError, match="fit"):
        parse_head(replace(head, bias=head.bias[:1]).bytes())


def test_the_shipped_head_is_whole_and_of_the_package_rows() -> None:
    shipped = read_head(HEAD)
    assert shipped.embedder == "e5+use"
    assert set(shipped.kinds) == set(own_rows().emotions)
    assert len(shipped.vectors) == 896


def test_own_rows_are_many_and_balanced_in_language() -> None:
    rows = own_rows()
    assert len(set(rows.texts)) == len(rows.texts) >= 600
    assert sum(text.isascii() for text in rows.texts) >= 300
    assert all(-1 <= value <= 1 for value in rows.scores)
    neutral = [value for value, emotion in zip(rows.scores, rows.emotions, strict=True) if emotion == "neutral"]
    assert max(map(abs, neutral)) <= 0.1
    assert len(neutral) >= 150


def test_rows_come_from_a_csv(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("text,score\n" + "\n".join(f'"太差了, {i}",-0.5' for i in range(12)), encoding="utf-8-sig")
    rows = read_rows(file)
    assert (rows.texts[0], rows.scores[0], len(rows.texts), list(rows.emotions)) == ("太差了, 0", -0.5, 12, [])
    emotion_training.train(rows, "hash")


@pytest.mark.parametrize(
    "content", ["text,value\na,1\n", "text,score\na,much\n", "text,score\na,1\n", "text,score\na,7\n" * 20]
)
def test_rows_that_are_none_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingError, match="labelled emotions"):
        read_rows(file)


def test_the_command_writes_a_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emotion_training.train, "__defaults__", ("hash",))
    emotion_training.main(["--output", str(tmp_path / "head.npz")])
    made = parse_head((tmp_path / "head.npz").read_bytes())
    assert Scorer(load_lexicon(*LEXICON), made).labels(["!!!"]) == [EmotionLabel(0.0, "neutral")]
