"""The ripple as one Cypher statement, and the numbers of its formula.

Belongs here: the statement that runs on Neo4j 5 and on ArcadeDB, its parameters, the constants that it shares with the
computation in memory (``recall.ripple``, which states the formula). Does not belong here: a driver.

Three rounds of maximum-product relaxation. A round touches each edge of the memories reached so far a bounded number of
times: paths are never listed, and an entity's holders are read once a round however many memories lead to it. What
a grouping need not see is projected away before it: ArcadeDB keeps a whole row a group.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from memory_pipelines.model import HIGH_ABOVE, LOW_BELOW, ImpactLabel, micros
from memory_pipelines.stores.authority import Use

MAX_HOPS = 3
MAX_ANCHORS = 5
UNKNOWN_IMPACT = 0.5
RATES = {ImpactLabel.HIGH: 0.3, ImpactLabel.MEDIUM: 0.5, ImpactLabel.LOW: 0.7}
"""Decay a hop by impact label."""
DAILY, LEAST_FRESH = 0.98, 0.5
"""Freshness after a day, and the least that it falls to."""
WINDOW_BONUS, MOST_WINDOWS = 0.1, 2
"""What each window of seven days in which it was presented often adds to a memory's base weight."""


def parameters(
    prefix: str, anchors: Mapping[str, float], as_of: datetime, hidden: Collection[str], uses: Mapping[str, Use]
) -> dict[str, Any]:
    """Of :data:`ACTIVATIONS`. ``prefix``: of the uids of one owner's graph version; ``anchors``: match in [0, 1] by
    memory id; ``hidden``: ids of memories that may not take part; ``uses`` by memory id, of those that were used."""
    best = sorted(((name, match) for name, match in anchors.items() if match > 0), key=lambda one: (-one[1], one[0]))
    return {
        "prefix": prefix,
        "anchors": [{"k": k, "id": name} for k, (name, _) in enumerate(best)],
        "match": [float(match) for _, match in best],
        "most": MAX_ANCHORS,
        "as_of": micros(as_of),
        "hidden": dict.fromkeys(hidden, True),
        "since": {name: micros(use.accessed_at) for name, use in uses.items() if use.accessed_at is not None},
        "windows": {name: use.activations for name, use in uses.items() if use.activations},
        "low": LOW_BELOW,
        "high": HIGH_ABOVE,
        "unknown": UNKNOWN_IMPACT,
        "rate_low": RATES[ImpactLabel.LOW],
        "rate_medium": RATES[ImpactLabel.MEDIUM],
        "rate_high": RATES[ImpactLabel.HIGH],
        "daily": DAILY,
        "least": LEAST_FRESH,
        "bonus": WINDOW_BONUS,
    }


_USABLE = "b.occurred_at <= $as_of AND $hidden[b.node_id] IS NULL"
_ANCHORS = f"""
CALL {{
  UNWIND $anchors AS f
  MATCH (b:Memory {{uid: $prefix + f.id}})
  WHERE {_USABLE}
  WITH f.k AS k, f.id AS id
  ORDER BY k
  LIMIT $most
  RETURN collect({{k: k, id: id, value: 1.0}}) AS reached0
}}
"""
_DAMP = f"""
CALL {{
  WITH reached<n>
  CALL {{
    WITH reached<n>
    UNWIND reached<n> AS f
    WITH f.id AS id, f.k AS k, f.value AS value
    WITH id, collect({{k: k, value: value}}) AS spreads
    CALL {{
      WITH id
      MATCH (m:Memory {{uid: $prefix + id}})-[]-(b:Memory)
      WHERE b.node_id <> id AND {_USABLE}
      RETURN count(DISTINCT b.node_id) AS degree
    }}
    RETURN id, spreads, degree
  UNION ALL
    WITH reached<n>
    UNWIND reached<n> AS f
    WITH DISTINCT f.id AS id
    MATCH (m:Memory {{uid: $prefix + id}})-[:MENTIONS]-(e:Entity)
    WITH e, collect(DISTINCT id) AS near
    CALL {{
      WITH e
      MATCH (e)-[:MENTIONS]-(b:Memory)
      WHERE {_USABLE}
      RETURN count(DISTINCT b.node_id) AS holders
    }}
    WITH near, holders
    WHERE holders > 1
    UNWIND near AS id
    WITH id
    RETURN id, [] AS spreads, count(*) AS degree
  }}
  WITH id, collect(spreads) AS lists, sum(degree) AS degree
  WITH id, degree, reduce(found = [], one IN lists | found + one) AS spreads
  UNWIND spreads AS s
  WITH id, degree, s.k AS k, s.value AS value
  RETURN collect({{k: k, id: id, value: value / sqrt(degree)}}) AS leaving<n>
}}
"""
"""Products over the root of the degree: distinct memories, and entities with more holders than one."""
_SPREAD = f"""
CALL {{
  WITH <from>
  CALL {{
    WITH <from>
    UNWIND <from> AS f
    WITH f.id AS id, f.k AS k, f.value AS value
    MATCH (m:Memory {{uid: $prefix + id}})-[r]-(b:Memory)
    WHERE b.node_id <> id AND {_USABLE}
    RETURN k, b.node_id AS id, value * r.weight AS value
  UNION ALL
    WITH <from>
    UNWIND <from> AS f
    WITH f.id AS id, f.k AS k, f.value AS value
    MATCH (m:Memory {{uid: $prefix + id}})-[r:MENTIONS]-(e:Entity)
    WITH e, k, max(value * r.weight) AS value
    WITH e, collect({{k: k, value: value}}) AS spreads
    CALL {{
      WITH e
      MATCH (e)-[r:MENTIONS]-(b:Memory)
      WHERE {_USABLE}
      WITH b.node_id AS id, max(r.weight) AS weight
      RETURN collect({{id: id, weight: weight}}) AS held
    }}
    WITH spreads, held
    WHERE size(held) > 1
    UNWIND spreads AS s
    UNWIND held AS h
    RETURN s.k AS k, h.id AS id, s.value * h.weight / sqrt(size(held)) AS value
  }}
  WITH k, id, value
  WITH k, id, max(value) AS value
  RETURN collect({{k: k, id: id, value: value}}) AS reached<n>
}}
"""
_SCORE = f"""
UNWIND [{", ".join(f"{{hops: {n}, reached: reached{n}}}" for n in range(MAX_HOPS + 1))}] AS round
UNWIND round.reached AS f
WITH round.hops AS hops, f.id AS id, f.k AS k, f.value AS value
MATCH (m:Memory {{uid: $prefix + id}})
WITH hops, id, k, value, CASE WHEN m.weight >= 0 THEN m.weight ELSE $unknown END AS impact,
     $as_of - coalesce($since[id], m.occurred_at) AS age, coalesce($windows[id], 0) AS windows
WITH hops, id, k, value, impact, impact + $bonus * windows AS weight,
     $daily ^ (CASE WHEN age > 0 THEN age ELSE 0 END / 86400000000.0) AS fresh
WITH id, k, CASE WHEN weight < 1 THEN weight ELSE 1.0 END AS weight,
     CASE WHEN fresh > $least THEN fresh ELSE $least END AS fresh,
     value * exp(-hops * CASE WHEN impact < $low THEN $rate_low WHEN impact > $high THEN $rate_high
                              ELSE $rate_medium END) AS value
WITH id, k, weight, fresh, max(value) AS value
WITH id, collect($match[k] * value * weight * fresh) AS each
WITH id, 1 - reduce(left = 1.0, a IN each | left * (1 - a)) AS activation
WHERE activation > 0
RETURN collect([id, activation]) AS active
"""


def _statement() -> str:
    parts = [_ANCHORS]
    for n in range(MAX_HOPS):
        if n:
            parts.append(_DAMP.replace("<n>", str(n)))
        parts.append(_SPREAD.replace("<from>", f"leaving{n}" if n else "reached0").replace("<n>", str(n + 1)))
    return "".join([*parts, _SCORE])


ACTIVATIONS = _statement()
"""One record, ``active``: pairs of memory id and activation above 0."""
