"""The reader: a query in, the right memories out, and why.

Belongs here: the order of the steps, and what happens when a store does not answer. Does not
belong here: any formula, any wording. The query is data: it reaches stores as a vector or as ids
found with it, never as part of a statement, filter or key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from memory_pipelines.clock import Clock
from memory_pipelines.errors import InputError, PermanentError, StoreUnavailableError
from memory_pipelines.model import Owner, Tier, known_subject, micros, utc
from memory_pipelines.models.base import Embedder
from memory_pipelines.recall import dense, facts, fusion, noted, prompt, reach, reveal, selection, text, times
from memory_pipelines.recall.answer import Answer, Explanation, Item, LegScore, Reasons, leg_scores
from memory_pipelines.recall.bm25 import Mask
from memory_pipelines.recall.buffer import Buffers
from memory_pipelines.recall.fusion import SHIPPED, Fused, Weights
from memory_pipelines.recall.guard import Run, unguarded
from memory_pipelines.recall.legs import Leg, Scored, ranked, ranked_rows
from memory_pipelines.recall.person import Subjects
from memory_pipelines.recall.queries import QueryVectors
from memory_pipelines.recall.ripple import Field, Ripple
from memory_pipelines.recall.selection import MAX_ITEMS, Selection
from memory_pipelines.recall.snapshot import Snapshot, as_told, validity
from memory_pipelines.recall.source import Source
from memory_pipelines.recall.why import why
from memory_pipelines.stores.authority import Authority, Links, Packs, Person, VectorCollection
from memory_pipelines.stores.base import ColdStore, GraphStore, HotStore, VectorStore
from memory_pipelines.stores.ripple import MAX_ANCHORS
from memory_pipelines.stores.vault import Vault

BM25 = "bm25"
MAX_QUERY = 2000
"""Characters of a query that are searched for; the prompt keeps all of them."""
RIPPLE = "ripple"
RIPPLE_FLOOR = 0.05
"""Lower than other legs' floor: an activation has passed through weights, degrees and decay."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What one recall may see: rows under a mask, at an instant."""

    persons: tuple[Person, ...]
    """Of the subject that was asked for, then of those linked to it."""
    suppressed: frozenset[str]
    snapshot: Snapshot
    usable: Mask
    as_of: datetime
    language: str
    missing: set[str]
    buffer: Snapshot | None
    """What was said and is not consolidated yet."""
    live: VectorCollection | None
    """The vector collection, as it was read with the persons."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What the legs found: fused scores and relevances by row, superseded facts with what holds instead."""

    legs: tuple[Leg, ...] = ()
    scores: Mapping[int, float] = field(default_factory=dict)
    relevance: Mapping[int, float] = field(default_factory=dict)
    closed: Mapping[int, facts.Closed] = field(default_factory=dict)
    ripple: Ripple | None = None


class Recall:
    """Reads memories of one person at a time: of a subject and those linked to it.

    Safe to share between threads if the stores are."""

    def __init__(
        self,
        authority: Authority,
        vectors: VectorStore,
        graph: GraphStore,
        hot: HotStore,
        cold: ColdStore,
        embedder: Embedder,
        clock: Clock,
        token_budget: int,
        links: Links | None = None,
        vault: Vault | None = None,
        searched: Callable[[VectorCollection | None], tuple[Embedder, VectorStore]] | None = None,
        weights: Weights = SHIPPED,
        packs: Packs | None = None,
        buffers: Buffers | None = None,
        guard: Run = unguarded,
    ) -> None:
        """``token_budget``: estimated tokens that the history slices of one answer may fill; ``links``: where
        it is noted that a link has shown (None: nowhere); ``vault``: what tokens stand for (None: they stay);
        ``searched``: embedder and collection that belong together, given the live collection as it was just read, or
        None to have it read (None: always those given); ``weights``: of
        the legs in an answer's order; ``packs``: where the jobs keep packs (None: everything is read from the
        stores); ``buffers``: what was just said (None: memories only); ``guard``: runs the dense leg, whose model may
        be an endpoint. Stores guard themselves (``Guard.of``)."""
        self._source = Source(authority, hot, cold, packs, buffers)
        self._queries = QueryVectors()
        self._subjects = Subjects(links)
        self._searched = searched or (lambda live: (embedder, vectors))
        self._graph = graph
        self._clock = clock
        self._budget = float(token_budget)
        self._vault = vault
        self._weights = weights
        self._guard = guard
        self._near = noted.Near()

    def recall(
        self,
        query: str,
        *,
        tenant: str,
        subject: str,
        as_of: datetime | None = None,
        limit: int = MAX_ITEMS,
        explain: bool = False,
    ) -> Answer:
        """The person's memories for ``query`` at ``as_of`` (aware; None: now): what had occurred and not expired.

        Summaries, impacts and suppressions are today's: a past instant hides memories, it does not rewrite them, but
        that a fact which held then is told in the person's own words, not in a sentence that knows its end.
        At most ``limit`` items (1 to 15), newest first; up to a third of them, one at least, may be turns that were
        just noted, and are in no memory yet. A blank query opens a session. A tenant or
        subject without memories gets an answer without items. Raises InputError where the subject has no prefix
        (``u:``, ``d:``) or the limit is below 1, StoreUnavailableError only if the
        authority is down and no copy of the subject is at hand; other stores are named in ``missing``, and
        "relational" where links or the rows of a linked subject could not be read and are left out.
        """
        if limit < 1:
            raise InputError("a recall needs a limit of 1 or more")
        if not query.strip():
            return self.session_start(tenant=tenant, subject=subject, as_of=as_of, explain=explain)
        scope = self._scope(Owner(tenant, known_subject(subject)), as_of, text.language(query))
        asked = text.well_formed(query[:MAX_QUERY])
        found, told = self._find(asked, scope), self._told(asked, scope, min(limit, MAX_ITEMS))
        chosen = selection.select(
            found.scores,
            found.relevance,
            {row: fact.successor for row, fact in found.closed.items() if fact.successor is not None},
            scope.snapshot,
            limit=min(limit, MAX_ITEMS) - len(told.items),
            budget=self._budget - told.tokens,
            cost=_cost(scope),
        )
        return self._answer(query, scope, found, chosen, explain, told)

    def session_start(
        self, *, tenant: str, subject: str, as_of: datetime | None = None, explain: bool = False
    ) -> Answer:
        """What to know before the first word: the 3 most recent slices of high impact."""
        scope = self._scope(Owner(tenant, known_subject(subject)), as_of, None)
        chosen = selection.session_start(scope.usable, scope.snapshot, budget=self._budget, cost=_cost(scope))
        return self._answer("", scope, _Found(), chosen, explain)

    def _scope(self, owner: Owner, as_of: datetime | None, language: str | None) -> _Scope:
        instant = self._clock.now() if as_of is None else utc(as_of)
        missing: set[str] = set()
        found = self._source.find(owner, instant, missing)
        snapshot, buffer = found.snapshot, found.buffer
        suppressed = frozenset[str]().union(*(person.suppressed for person in found.persons))
        usable = snapshot.usable(instant, suppressed)
        language = language or (snapshot if len(snapshot) or buffer is None else buffer).language
        return _Scope(found.persons, suppressed, snapshot, usable, instant, language, missing, buffer, found.live)

    def _find(self, query: str, scope: _Scope) -> _Found:
        if not scope.usable.any():
            return _Found()
        snapshot, usable = scope.snapshot, scope.usable
        words = text.tokens(query)
        lexical, dense_hits = snapshot.words.score(words, usable), self._dense(query, scope)
        named = times.span(query, scope.as_of)
        bm25, near, stated, then = (
            ranked_rows(BM25, *lexical),
            ranked(dense.NAME, dense_hits),
            facts.leg(words, snapshot, usable, scope.as_of),
            times.leg(named, named is not None and times.has_subject(query, named), snapshot, usable),
        )
        fused = fusion.blend(lexical, dense_hits, query, snapshot, usable, self._weights)
        fused = fusion.with_legs(fused, ((stated, self._weights.facts), (then, self._weights.time)))
        ripple = self._ripple(fused, scope) if self._weights.ripple else None
        spread = Leg(RIPPLE, ())
        if ripple is not None:
            spread = ranked(RIPPLE, Scored(ripple.rows, ripple.values, ripple.values), RIPPLE_FLOOR)
            fused = fusion.with_legs(fused, ((spread, self._weights.ripple),))
        scores, relevance = fusion.weighed(fused, snapshot, scope.as_of)
        closed = facts.superseded(scores, snapshot, usable, scope.as_of)
        scores, relevance = facts.demote(scores, relevance, closed)
        legs = tuple(leg for leg in (bm25, near, stated, then, spread) if leg.found)
        return _Found(legs, scores, relevance, closed, ripple)

    def _told(self, query: str, scope: _Scope, limit: int) -> noted.Told:
        """What was just said about it."""
        buffer = scope.buffer
        if buffer is None or limit < 1:
            return noted.NOTHING
        near = Scored.none()
        try:
            usable = buffer.usable(scope.as_of, frozenset())
            near = self._guard(lambda: self._nearest_noted(query, scope, buffer, usable))
        except StoreUnavailableError:
            scope.missing.add(dense.ROLE)
        told = noted.find(
            query,
            buffer,
            near,
            as_of=scope.as_of,
            language=scope.language,
            weights=self._weights,
            limit=limit,
            budget=self._budget,
        )
        return noted.unheld(told, scope.snapshot)

    def _nearest_noted(self, query: str, scope: _Scope, buffer: Snapshot, usable: Mask) -> Scored:
        embedder = self._searched(scope.live)[0]
        return self._near(embedder, self._queries.of(embedder, query), buffer, usable)

    def _dense(self, query: str, scope: _Scope) -> Scored:
        try:
            return self._guard(lambda: self._nearest(query, scope))
        except StoreUnavailableError:
            scope.missing.add(dense.ROLE)
            return Scored.none()

    def _nearest(self, query: str, scope: _Scope) -> Scored:
        embedder, vectors = self._searched(scope.live)
        while True:
            vector = self._queries.of(embedder, query)
            try:
                found = dense.search(vectors, embedder, vector, scope.snapshot, scope.usable, scope.missing)
            except PermanentError:
                if self._searched(None)[1] is vectors:
                    raise
                found = Scored.none()
            before, (embedder, vectors) = vectors, (embedder, vectors) if len(found.rows) else self._searched(None)
            if vectors is before:  # else another collection took its place meanwhile, and it may be gone
                return found

    def _ripple(self, fused: Fused, scope: _Scope) -> Ripple | None:
        """Activation from the best hits of the other legs; None without a graph or anchors."""
        snapshot, best = scope.snapshot, fused.candidates()[:MAX_ANCHORS]
        if not best:
            return None
        try:
            graph = reach.graph(self._graph, scope.persons, snapshot)
        except StoreUnavailableError:
            scope.missing.add("graph")
            return None
        if graph is None:
            return None
        ids, web = snapshot.memory_ids, graph.among(scope.usable)
        field = Field(ids, snapshot.by_memory, snapshot.impact, snapshot.since, snapshot.activations, web)
        return Ripple({ids[row]: float(fused.relevance[row]) for row in best}, field, scope.as_of)

    def _answer(
        self,
        query: str,
        scope: _Scope,
        found: _Found,
        chosen: Selection,
        explain: bool,
        told: noted.Told = noted.NOTHING,
    ) -> Answer:
        views = {leg.name: leg_scores(leg, None if explain else chosen.chosen) for leg in found.legs}
        at = list(chosen.chosen)
        recency = fusion.recency(scope.snapshot.occurred[at], scope.as_of).tolist()
        trust = fusion.trust(scope.snapshot.trust[at]).tolist()
        items = tuple(
            self._item(row, multipliers, scope, found, views, explain)
            for row, *multipliers in zip(at, recency, trust, strict=True)
        )
        if told.items:
            items = tuple(sorted((*told.items, *items), key=lambda item: item.memory.occurred_at, reverse=True))
        items = reveal.revealed_items(items, self._vault, scope.missing)
        explanation = _explanation(scope, found, views, chosen, told) if explain else None
        asked, *linked = (person.owner for person in scope.persons)
        self._subjects.shown(asked, linked, self._clock.now())
        return Answer(query, scope.language, scope.as_of, items, tuple(sorted(scope.missing)), explanation)

    def _item(
        self,
        row: int,
        multipliers: Sequence[float],
        scope: _Scope,
        found: _Found,
        views: Mapping[str, Mapping[int, LegScore]],
        explain: bool,
    ) -> Item:
        recency, trust = multipliers
        memory = scope.snapshot.rows[row]
        if memory.tier == Tier.COLD and not memory.text:
            memory = replace(memory, text=self._source.cold_text(memory, scope.missing) or "")
        memory = as_told(memory, scope.as_of, self._clock.now())
        reasons = Reasons(
            legs=tuple(view[row] for view in views.values() if row in view),
            relevance=found.relevance.get(row, 0.0),
            recency=recency,
            trust=trust,
            paths=() if found.ripple is None else found.ripple.paths(memory.memory_id, every=explain),
            validity=validity(memory, scope.as_of),
            superseded_by=_successor(row, scope.snapshot, found),
            tier=memory.tier,
        )
        return Item(memory, found.scores.get(row, 0.0), reasons, why(memory, reasons, scope.snapshot, scope.language))


def _successor(row: int, snapshot: Snapshot, found: _Found) -> str | None:
    fact = found.closed.get(row)
    return None if fact is None or fact.successor is None else snapshot.memory_ids[fact.successor]


def _cost(scope: _Scope) -> Callable[[int], float]:
    snapshot, instant = scope.snapshot, micros(scope.as_of)

    def cost(row: int) -> float:
        key = row, scope.language, bool(snapshot.valid_to[row] <= instant)
        found = snapshot.costs.get(key)
        if found is None:
            found = snapshot.costs[key] = prompt.cost(snapshot.rows[row], scope.as_of, scope.language)
        return found

    return cost


def _explanation(
    scope: _Scope, found: _Found, views: Mapping[str, Mapping[int, LegScore]], chosen: Selection, told: noted.Told
) -> Explanation:
    snapshot, ids, instant = scope.snapshot, scope.snapshot.memory_ids, micros(scope.as_of)
    hidden = np.flatnonzero(~scope.usable).tolist()
    return Explanation(
        legs={name: tuple((ids[row], score) for row, score in view.items()) for name, view in views.items()},
        anchors=() if found.ripple is None else found.ripple.anchors,
        suppressed=tuple(ids[row] for row in hidden if ids[row] in scope.suppressed),
        expired=tuple(ids[row] for row in hidden if snapshot.expires[row] <= instant),
        later=tuple(ids[row] for row in hidden if snapshot.occurred[row] > instant),
        passed_over=tuple((ids[row], reason) for row, reason in chosen.passed_over),
        owners=tuple(person.owner.key for person in scope.persons),
        noted=told.legs,
    )
