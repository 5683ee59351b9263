"""A sequence tagger of named entities: conditional random fields over characters (Chinese) or words (the rest).

An accurate tagger has a network beside the field of Chinese texts: both say how likely each label is at each
character, and the path of labels with the highest mean of both logarithms is taken.

Belongs here: a trained model's file and how it tags a text. Does not belong here: its features
(``tagger_features``), fitting it (``tagger_training``), nor which kinds of entities there are: the rows that it was
trained on say.
"""

import io
import json
import threading
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from memory_pipelines.errors import InputError
from memory_pipelines.slices.entities.tagger_features import Names, features, has_han, units
from memory_pipelines.slices.language import normalise

if TYPE_CHECKING:
    from memory_pipelines.slices.entities.tagger_chain import Floats
    from memory_pipelines.slices.entities.tagger_network import Network

FORMAT, WITH_NETWORK = 1, 2
"""Of a tagger without and with a network."""
NETWORK_SHARE = 0.5
"""Of the logarithms of probabilities that are put together."""
FAINTEST = 1e-6


class Span(NamedTuple):
    """``text[start:end]`` is an entity of the kind."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Part:
    """The model of one script: ``weights`` is a CRFsuite file, ``names`` the entities of its training rows by kind,
    ``network`` a file of ``tagger_network``, or nothing."""

    weights: bytes
    names: Mapping[str, Sequence[str]]
    network: bytes = b""


def pack(parts: Mapping[str, Part], card: Mapping[str, Any]) -> bytes:
    """One file of a tagger's parts (``han``, ``other``); equal parts give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for script, part in sorted(parts.items()):
            _add(archive, f"{script}.crf", part.weights)
            _add(archive, f"{script}.json", json.dumps(part.names, ensure_ascii=False, sort_keys=True).encode())
            if part.network:
                _add(archive, f"{script}.npz", part.network)
        version = WITH_NETWORK if any(part.network for part in parts.values()) else FORMAT
        _add(archive, "card.json", json.dumps({"format": version, **card}, ensure_ascii=False, sort_keys=True).encode())
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(
        zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED
    )  # ZipInfo's own time: the file's hash is its content's


class Tagger:
    """Finds entities in texts; a text's spans depend on the text and the model alone. Safe to share by threads."""

    def __init__(self, model: bytes) -> None:
        """Raises InputError if the bytes are no tagger of this version, SettingError if it has a network and what
        that reads is not installed."""
        import pycrfsuite

        self._parts: dict[str, tuple[Any, Names]] = {}
        self._networks: dict[str, Network] = {}
        self._kept: list[bytes] = []  # the library reads them where they are and keeps no reference
        self._lock = threading.Lock()
        try:
            with zipfile.ZipFile(io.BytesIO(model)) as archive:
                self.card: dict[str, Any] = json.loads(archive.read("card.json"))
                if self.card.get("format") not in (FORMAT, WITH_NETWORK):
                    raise InputError("the tagger was trained by another version; train it anew")
                for script in ("han", "other"):
                    if f"{script}.crf" in archive.namelist():
                        tagger = pycrfsuite.Tagger()
                        weights = archive.read(f"{script}.crf")
                        tagger.open_inmemory(weights)
                        self._kept.append(weights)
                        self._parts[script] = (tagger, Names(json.loads(archive.read(f"{script}.json"))))
                    if f"{script}.npz" in archive.namelist():
                        from memory_pipelines.slices.entities.tagger_network import read

                        self._networks[script] = read(archive.read(f"{script}.npz"))
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise InputError("the file is no trained tagger") from error

    def tag(self, text: str) -> list[Span]:
        """Entities of the text, from left to right, without overlaps. No spans in a script without training rows.

        Of a text the first ``language.MAX_CHARS`` characters are read, in about 20 ms a thousand, with a network
        150 ms."""
        text = normalise(text)
        script = "han" if has_han(text) else "other"
        part = self._parts.get(script)
        found = units(text)
        if part is None or not found:
            return []
        tagger, names = part
        rows = features(text, found, names)
        network = self._networks.get(script)
        with self._lock:
            labels = tagger.tag(rows)
            sure = None if network is None else _marginals(tagger, len(rows), network.labels)
        if network is not None and sure is not None:
            labels = _together(sure, network.marginals(text, found), network.labels)
        return spans(labels, found)


def _marginals(tagger: Any, size: int, labels: Sequence[str]) -> "Floats":
    """The probability of each label at each unit of the text that the field has just read; 0 of one no row had."""
    known = set(tagger.labels())
    rows = [[tagger.marginal(label, i) if label in known else 0.0 for label in labels] for i in range(size)]
    return np.array(rows).reshape(size, len(labels))


def _together(field: "Floats", network: "Floats", labels: Sequence[str]) -> list[str]:
    """The best path of labels by both probabilities (units, labels)."""
    from memory_pipelines.slices.entities.tagger_chain import allowed, best_path

    logs = (1 - NETWORK_SHARE) * np.log(field + FAINTEST) + NETWORK_SHARE * np.log(network + FAINTEST)
    return [labels[i] for i in best_path(logs, *allowed(labels))]


def spans(labels: Sequence[str], found: Sequence[tuple[int, int]]) -> list[Span]:
    """Spans of BIO labels over units; an ``I`` that continues nothing begins a span."""
    result: list[Span] = []
    before = "O"
    for label, (start, end) in zip(labels, found, strict=True):
        kind = label[2:]
        if label.startswith("I") and before[2:] == kind:
            result[-1] = result[-1]._replace(end=end)
        elif label != "O":
            result.append(Span(start, end, kind))
        before = label
    return result


def labels(found: Sequence[tuple[int, int]], truth: Sequence[Span]) -> list[str]:
    """BIO labels of units; a unit belongs to the span that its first character is in. Of overlapping spans the
    longer counts, then the earlier."""
    result = ["O"] * len(found)
    for span in sorted(truth, key=lambda s: (s.start - s.end, s.start)):
        inside = [i for i, (start, _) in enumerate(found) if span.start <= start < span.end]
        if inside and all(result[i] == "O" for i in inside):
            for i in inside:
                result[i] = f"{'B' if i == inside[0] else 'I'}-{span.kind}"
    return result
