"""What logs hold is shown, and steers no terminal."""

from memory_pipelines.shown import shown


def test_text_and_emoji_pass_as_they_are() -> None:
    for text in ("plain", "中文，标点。", "👨\u200d👩\u200d👧 ok", "naïve – “quoted”"):
        assert shown(text) == text


def test_control_characters_are_written_out() -> None:
    assert shown("a\nb\x1b[31m\x07\u202ec\u2028") == "a\\nb\\x1b[31m\\x07\\u202ec\\u2028"
