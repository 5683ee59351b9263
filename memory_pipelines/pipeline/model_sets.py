"""The model set of the settings over the stores: its trained models, and that it is what it was.

Belongs here: which models label. Does not belong here: training them (``trained``), writing labels (``daily``).
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from memory_pipelines.errors import IntegrityError, SettingError
from memory_pipelines.model import canonical_json, stable_hash
from memory_pipelines.models.sets import ModelSet, load_model_set
from memory_pipelines.pipeline.daily import Step
from memory_pipelines.slices.bodies import unpacked
from memory_pipelines.slices.emotion.head import parse_head
from memory_pipelines.slices.emotion.score import Scorer, label_emotions
from memory_pipelines.slices.emotion.training import LEXICON
from memory_pipelines.slices.emotion.words import load_lexicon
from memory_pipelines.slices.entities.find import label_entities
from memory_pipelines.slices.entities.tagger import Tagger
from memory_pipelines.slices.intent.files import from_body, load_model
from memory_pipelines.slices.intent.model import IntentModel
from memory_pipelines.slices.intent.predict import label_intents
from memory_pipelines.slices.labelled import EMOTION, ENTITIES, INTENT
from memory_pipelines.slices.resources import label_files
from memory_pipelines.stores.registry import ModelRow
from memory_pipelines.wiring import Platform

KIND = "model_set"
"""Of the registry's rows that say what a set held when it labelled first."""

Model = TypeVar("Model")


def model_set_of(platform: Platform) -> ModelSet:
    """The model set of the settings, those of the home among them. Raises SettingError if there is none."""
    return load_model_set(platform.settings.model_set, platform.settings.home_path)


def labelling_set(platform: Platform) -> ModelSet:
    """``model_set_of``, to label with: the registry notes what it holds the first time.

    Raises IntegrityError if it held something else then: labels of one name would differ by when they were made."""
    chosen = model_set_of(platform)
    noted = [json.loads(row.body) for row in platform.registry.rows(KIND)]
    before = [note["digests"] for note in noted if note["name"] == chosen.name]
    changed = sorted({step for digests in before for step in digests if digests[step] != chosen.digests[step]})
    if changed:
        raise IntegrityError(
            f"model set {chosen.name} has changed since it labelled first ({', '.join(changed)}): put its files back, "
            "or give what changed a set of another name"
        )
    if not before:
        body = canonical_json({"name": chosen.name, "digests": dict(chosen.digests)})
        now = platform.clock.now()
        platform.registry.add(ModelRow(stable_hash(body), KIND, now, now, now, "", 0, {}, "labels", body))
    return chosen


def intent_step(platform: Platform) -> Step:
    """Step 2 with the model set of the settings. Raises SettingError if the registry lacks its trained model."""
    chosen = labelling_set(platform)
    return _step(label_intents, chosen, intent_model(platform, chosen))


def emotion_step(platform: Platform) -> Step:
    """Step 3; raises as ``intent_step`` does."""
    chosen = labelling_set(platform)
    return _step(label_emotions, chosen, _trained(platform, chosen, EMOTION, scorer_of))


def entity_step(platform: Platform) -> Step:
    """Step 4; raises as ``intent_step`` does."""
    chosen = labelling_set(platform)
    return _step(label_entities, chosen, _trained(platform, chosen, ENTITIES, tagger_of, knows_taggers))


def intent_model(platform: Platform, chosen: ModelSet) -> IntentModel:
    """A registered intent model, or the one that ships in the set."""
    return _trained(platform, chosen, INTENT, from_body) or load_model(chosen)


def scorer_of(body: str) -> Scorer:
    """The scorer of a registered emotion head. Raises IntegrityError if it is none."""
    return Scorer(load_lexicon(*LEXICON), parse_head(unpacked(EMOTION, body)))


def tagger_of(body: str) -> Tagger:
    """A registered tagger. Raises IntegrityError if it is none."""
    return Tagger(unpacked(ENTITIES, body))


def knows_taggers(chosen: ModelSet) -> None:
    """Raises SettingError for a set whose entities are found by the first revision of the rules."""
    if "names" not in label_files(chosen, ENTITIES):
        raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: {chosen.name} knows no tagger; take base-2 or a later one")


def _step(label: Callable[..., pa.Table], chosen: ModelSet, model: Any) -> Step:
    return lambda exchanges, _: label(exchanges, chosen, model)


def _trained(
    platform: Platform,
    chosen: ModelSet,
    step: str,
    load: Callable[[str], Model],
    check: Callable[[ModelSet], None] = lambda _: None,
) -> Model | None:
    start = chosen.trained.get(step)
    if start is None:
        return None
    check(chosen)
    found = platform.registry.beginning(step, start)
    if len(found) != 1:
        raise SettingError(f"MEMORY_PIPELINES_MODEL_SET: the registry has no model {start} of {step}")
    return load(found[0].body)
