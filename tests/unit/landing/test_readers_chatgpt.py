"""The tree of a conversation: one branch is the dialogue, nothing of the others is lost."""

from typing import Any

from reading import column, dump, errors, read

from memory_pipelines.landing.mapping import parse_mapping
from memory_pipelines.slices.clean import filter_rule


def message(key: str, role: str, text: str, at: float | None = 1715933550.5, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    return {"id": key, "author": {"role": role}, "create_time": at, "content": content, "recipient": "all"} | more


def tree(*nodes: tuple[str, str | None, dict[str, Any] | None], current: Any = None, **more: Any) -> dict[str, Any]:
    mapping = {key: {"id": key, "message": said, "parent": parent, "children": []} for key, parent, said in nodes}
    for key, parent, _ in nodes:
        if parent in mapping:
            mapping[parent]["children"].append(key)
    return {"id": "c1", "title": "t", "create_time": 1715933500.0, "mapping": mapping, "current_node": current} | more


REGENERATED = tree(
    ("root", None, None),
    ("s", "root", message("s", "system", "", None)),
    ("q", "s", message("q", "user", "where is it?")),
    ("a1", "q", message("a1", "assistant", "no idea")),
    ("a2", "q", message("a2", "assistant", "on its way")),
    ("q2", "a2", message("q2", "user", "thanks")),
    current="q2",
)


def test_the_branch_of_the_current_node_is_the_dialogue() -> None:
    made = read(dump([REGENERATED]), name="conversations.json")
    assert column(made, "turn_id", "role", "text") == [
        ("s", "system", ""),
        ("q", "user", "where is it?"),
        ("a2", "assistant", "on its way"),
        ("q2", "user", "thanks"),
        ("a1", "unchosen", "no idea"),
    ]
    assert set(column(made, "conversation_id")) == {"c1"}
    assert column(made, "occurred_at")[:2] == [1715933500.0, 1715933550.5]
    assert [raw.position for raw in made] == [0, 1, 2, 3, 4]
    assert filter_rule("unchosen", "no idea") == "unchosen_branch"


def test_without_a_current_node_the_latest_children_are_followed() -> None:
    for current in (None, "gone", 7):
        made = read(dump([REGENERATED | {"current_node": current}]), "chatgpt")
        assert column(made, "turn_id")[:4] == ["s", "q", "a2", "q2"]


def test_what_nobody_saw_is_of_the_system() -> None:
    shown = tree(
        ("h", None, message("h", "user", "about me", metadata={"is_visually_hidden_from_conversation": True})),
        ("w", "h", message("w", "assistant", "x", weight=0.0)),
        ("t", "w", message("t", "assistant", "search()", recipient="browser")),
        ("r", "t", message("r", "tool", "found")),
        ("a", "r", message("a", "assistant", "here", weight=1.0)),
        current="a",
    )
    assert column(read(dump([shown]), "chatgpt"), "role") == ["system"] * 4 + ["assistant"]


def test_a_message_without_a_time_stays_without() -> None:
    said = tree(("q", None, message("q", "user", "hi", None)), current="q")
    assert column(read(dump([said]), "chatgpt"), "occurred_at") == [None]


def test_contents() -> None:
    contents: list[Any] = [
        {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "what is this?"]},
        {"content_type": "code", "text": "print(1)"},
        {"content_type": "text", "parts": None},
        None,
    ]
    nodes = [(str(i), str(i - 1), message(str(i), "user", "", content=c)) for i, c in enumerate(contents)]
    assert column(read(dump([tree(*nodes, current="3")]), "chatgpt"), "text") == ["what is this?", "print(1)", "", ""]


def test_a_tree_that_is_none() -> None:
    circle = tree(("a", "b", message("a", "user", "x")), ("b", "a", message("b", "user", "y")), current="a")
    assert sorted(column(read(dump([circle]), "chatgpt"), "text")) == ["x", "y"]
    odd = {"mapping": {"a": 7, "b": {"message": "x"}, "c": {"message": message("c", "user", "z")}}, "current_node": "c"}
    made = read(dump([odd, {"title": "no tree"}, 5]), "chatgpt")
    assert column(made, "text") == ["z"]
    assert errors(made) == [None, "not_an_object", "not_an_object", "no_messages", "not_an_object"]


def test_the_user_comes_from_the_mapping() -> None:
    made = read(dump([REGENERATED]), "chatgpt", parse_mapping("constants: {user_id: ann}"))
    assert set(column(made, "user_id")) == {"ann"}
