"""What a person's next turn says of the memories that an agent has just used: denied, brought up, or neither.

Belongs here: rules for Chinese and English, pure functions. Does not belong here: what follows from a denial
(``feedback``). A rule that is wrong hides something true for a month, so a doubt is no denial: who does not remember
has not denied, a question has not, and what has ended was true before.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_pipelines.recall import text
from memory_pipelines.recall.columns import entity_name
from memory_pipelines.stores.authority import StoredMemory

SHARE = 0.6
"""Of the denied words that a memory must hold: of a verb and its object, both."""
ECHOED = 0.5
"""Of a memory's own words that a turn must hold to have brought it up."""
ALONE = 3
"""Characters of a text that are words of their own."""
MARGIN = 0.15
"""Memories that hold nearly as many of the denied words as the best one are denied with it."""

_CLAUSE = re.compile(r"[^。！？!?;；，,\n]+?(?:\.(?=\s|$)|[。！？!?;；，,\n]|$)|[^。！？!?;；，,\n]+")
_UNSURE = re.compile(
    r"好像|似乎|大概|也许|可能|应该没|[没不].{1,12}吧\s*[。！!，,]?\s*$|不(?:太|大)?记得|记不(?:太|大)?(?:清|得|住|起)|想不起|忘(?:了|记)|没(?:什么)?印象|不(?:太)?(?:确定|清楚|知道)|"
    r"\b(?:do|did|does|ca|can|could|wo)(?:n't|not| not) (?:really |quite |even )?(?:remember|recall|know|think of)\b|"
    r"\b(?:maybe|perhaps|probably|i think|i guess|might|as far as i)\b|\bcannot (?:remember|recall)\b|"
    r"\b(?:forgot|forgotten|not sure|no idea|no memory)\b",
    re.I,
)
_ASKS = re.compile(r"[?？]\s*$|[吗么嘛]\s*[。！!]?\s*$|(?:没有|没|不是)呢\s*$")
_ENDED = re.compile(
    r"不再|已经不|早就不|现在不|(?:不|没).{0,12}了\s*[。！!，,]?\s*$|"
    r"\b(?:no longer|any ?more|not yet|yet|since then|used to)\b",
    re.I,
)

_NEVER_ZH = re.compile(
    r"(?:我|俺|咱|本人|人家)?(?:可|真|也|都|并|从来|根本|压根|明明|其实|又)*(?:就)?"
    r"(?:没有?|未曾|从未|不曾|从没)(?P<what>[^没不]{1,20}?)过(?P<rest>.{0,20})"
)
_DID_NOT_ZH = re.compile(
    r"(?:我|俺|咱|本人|人家)(?:可|真|也|都|并|从来|根本|压根|明明|其实|又)*(?:就)?没有?"
    r"(?P<what>(?:说|提|讲|投诉|要求|申请|取消|退|买|订|下单|同意|答应|反映|抱怨|养|去).{0,20})"
)
_IS_NOT_ZH = re.compile(
    r"(?:我|俺|咱|本人|人家)(?:可|真|也|都|并|从来|根本|压根|明明|其实|又)*(?:就)?"
    r"(?:不(?:是|叫|姓|住在?|在|喜欢|爱|吃|喝|用|养|对|属于?)|对(?=.{1,8}不过敏)|没有(?=[^过]{1,8}$))(?P<what>.{0,20})"
)
_NEVER_EN = re.compile(
    r"(?:\bi(?:'ve| have)? (?:never|(?:did|have|had)(?:n't| not)(?: ever)?)|^never)(?: ever| actually| even)? "
    r"(?P<what>.{2,80})",
    re.I,
)
_IS_NOT_EN = re.compile(
    r"\bi(?:'m| am) (?:not|no)\b(?P<am>.{2,80})|\bi (?:do(?:n't| not)|have no|own no)\b(?P<do>.{2,80})|"
    r"\bmy (?P<my>[a-z ]{2,30} (?:is|are|was)(?:n't| not)\b.{0,60})",
    re.I,
)
_WRONG = re.compile(
    r"(?:记|弄|搞|说|认)错(?:人)?了|没(?:有)?这(?:回|码)?事|没有的事|(?:不|并不)是我|不是这样|不是真的|并非如此|瞎说|胡说|^不对$|"
    r"\bthat(?:'s| is| was)? (?:not (?:true|right|correct|me)|wrong|incorrect|false|a mistake)\b|"
    r"\b(?:that|it|this) (?:never happened|(?:was|is)(?:n't| not) (?:me|true|right|correct))\b|"
    r"\byou(?:'re| are) (?:wrong|mistaken|confusing me)\b|\bnot me\b|\bno such thing\b|"
    r"\byou(?:'ve)? (?:got|have) (?:that|it) wrong\b",
    re.I,
)
_NEGATED = re.compile(r"没|不|未|无|\b(?:no|not|never|without)\b|n't", re.I)
_BACKGROUND = frozenset(
    text.tokens("the customer user person client says said has had was wants 用户 客户 顾客 表示 之后")
)


@dataclass(frozen=True, slots=True)
class Heard:
    """Ids of the memories that a turn denied, and of those that it brought up."""

    denied: tuple[str, ...] = ()
    echoed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Denial:
    """``words``: of what is denied; empty where the turn says only that something is wrong."""

    words: frozenset[str]


def heard(said: str, used: Sequence[StoredMemory]) -> Heard:
    """What ``said`` means for the memories ``used`` just before.

    A denial that names what it denies hits the memories that hold its words and say them without a negation of their
    own ("没收到" agrees with "没收到"); one that names nothing hits a memory only if it was the only one."""
    clauses = [match[0].strip() for match in _CLAUSE.finditer(said)]
    denials = [denial for clause in clauses if clause and (denial := _denial(clause)) is not None]
    held = {memory.memory_id: _words(memory) for memory in used}
    denied: set[str] = set()
    for denial in denials:
        if denial.words:
            denied |= _hit(denial.words, used, held)
        elif len(used) == 1:
            denied.add(used[0].memory_id)
    spoken = frozenset(text.tokens(said))
    echoed = (m.memory_id for m in used if m.memory_id not in denied and _brings_up(spoken, held[m.memory_id]))
    return Heard(tuple(m.memory_id for m in used if m.memory_id in denied), tuple(echoed))


def _denial(clause: str) -> _Denial | None:
    if _UNSURE.search(clause) or _ASKS.search(clause) or _ENDED.search(clause):
        return None
    for pattern in (_NEVER_ZH, _DID_NOT_ZH, _IS_NOT_ZH, _NEVER_EN, _IS_NOT_EN):
        found = pattern.search(clause)
        if found is not None:
            words = frozenset(text.tokens(" ".join(part for part in found.groups() if part)))
            if words:
                return _Denial(words)
    return _Denial(frozenset()) if _WRONG.search(clause.strip(" 。！!.,，")) else None


def _hit(words: frozenset[str], used: Iterable[StoredMemory], held: dict[str, frozenset[str]]) -> set[str]:
    shares = {
        memory.memory_id: _share(words, held[memory.memory_id]) for memory in used if not _NEGATED.search(_told(memory))
    }
    best = max(shares.values(), default=0.0)
    return {name for name, share in shares.items() if share >= SHARE and share >= best - MARGIN}


def _brings_up(spoken: frozenset[str], words: frozenset[str]) -> bool:
    own = words - _BACKGROUND
    return len(own & spoken) >= 2 and _share(own, spoken) >= ECHOED


def _share(words: frozenset[str], among: frozenset[str]) -> float:
    """The share of the words that are there. Of Chinese text each character counts, and is there with a pair of its
    neighbours: 投诉 in 投诉物流 and elsewhere is half of it. Of very short text ("养猫") each stands for itself."""
    han = [word for word in words if text.is_han(word)]
    paired = {char for word in words & among if text.is_pair(word) for char in word}
    if len(han) <= ALONE:
        paired |= {word for word in han if word in among}
    latin = [word for word in words if not text.is_han(word) and not text.is_pair(word)]
    there = sum(word in among for word in latin) + sum(word in paired for word in han)
    whole = len(latin) + len(han)
    return there / whole if whole else 0.0


def _told(memory: StoredMemory) -> str:
    return memory.summary


def _words(memory: StoredMemory) -> frozenset[str]:
    parts = (
        memory.summary,
        memory.text,
        memory.value,
        memory.predicate.replace("_", " "),
        memory.intent.replace("_", " "),
        *map(entity_name, memory.entities),
    )
    return frozenset(text.tokens("\n".join(parts)))
