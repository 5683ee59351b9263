"""Names that no dictionary lists, second revision: by word lists and the words around, LAC, or a user's own tagger.

Belongs here: which finders a model set asks for. Does not belong here: the finders (``english_names``,
``chinese_names``, ``tagger``), nor what is no name after all (``vetoes``).
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from memory_pipelines.errors import SettingError
from memory_pipelines.slices.entities.chinese_names import by_lac, find_chinese
from memory_pipelines.slices.entities.dictionary import load_dictionary
from memory_pipelines.slices.entities.english_names import find_english
from memory_pipelines.slices.entities.rules import NAMED, Finding, normal_form
from memory_pipelines.slices.entities.tagger import Tagger
from memory_pipelines.slices.resources import Named, label_files, label_step


def find_names(
    text: str, folded: str, model_set: Named, known: Sequence[Finding], tagger: Tagger | None = None
) -> Iterator[Finding]:
    """Findings in a normalised text and its folded form; ``known``: what the dictionary found in it; ``tagger``: in
    place of the model set's."""
    files = label_files(model_set, "entities")
    if not text.isascii():
        yield from find_chinese(text, folded, files["names"], load_dictionary(model_set), known)
        if "lac" in label_step(model_set, "entities"):
            yield from by_lac(text, folded, files["names"], load_dictionary(model_set), known)
    if any("A" <= char <= "Z" for char in text):
        yield from find_english(text, files["names"], known)
    if tagger is None and "tagger" in files:
        tagger = _tagger(files["tagger"])
    if tagger is not None:
        ids = {(f.start, f.end): f for f in known}
        for start, end, kind in tagger.tag(text):
            named = ids.get((start, end))
            name = normal_form(text[start:end]).replace("/", "_")
            canonical = named.canonical if named and named.kind == kind else f"{kind}/{name}"
            yield Finding(NAMED, start, end, kind, canonical)


@cache
def _tagger(file: str) -> Tagger:
    try:
        return Tagger(Path(file).read_bytes())
    except OSError as error:
        raise SettingError(f"the model set's tagger cannot be read ({type(error).__name__})") from error
