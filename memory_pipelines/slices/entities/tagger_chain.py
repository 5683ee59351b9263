"""A linear-chain conditional random field over scores of labels: loss, marginals, the best path of BIO labels.

Belongs here: numerics of the chain. Does not belong here: where scores come from (``tagger_network``).
Probabilities are scaled step by step, in float64 (Rabiner 1989).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
Floats = NDArray[np.float64]


def loss(
    scores: Numbers, truth: NDArray[np.int64], lengths: NDArray[np.int64], steps: Numbers, first: Numbers
) -> tuple[float, Floats, Floats, Floats]:
    """Mean negative log-likelihood of ``truth`` (T, B) and its slopes by ``scores`` (T, B, L), by the transitions
    ``steps`` (L, L) and by ``first`` (L), the scores of a first label."""
    size, width = scores.shape[1:]
    inside = np.arange(len(scores))[:, None] < lengths
    moves = np.exp(steps.astype(np.float64))
    top = scores.max(axis=2, keepdims=True).astype(np.float64)
    local = np.exp(scores - top)
    ahead = np.empty(scores.shape)
    logs = np.zeros((len(scores), size))
    for t in range(len(scores)):
        value = local[t] * (np.exp(first.astype(np.float64)) if t == 0 else ahead[t - 1] @ moves)
        total = value.sum(axis=1)
        value /= total[:, None]
        ahead[t] = value if t == 0 else np.where(inside[t][:, None], value, ahead[t - 1])
        logs[t] = np.where(inside[t], np.log(total) + top[t, :, 0], 0)
    back = np.ones((size, width))
    by_score, by_step = np.zeros(scores.shape), np.zeros((width, width))
    rows = np.arange(size)
    right = np.zeros(size)
    for t in range(len(scores) - 1, -1, -1):
        share = ahead[t] * back
        by_score[t] = np.where(inside[t][:, None], share / share.sum(axis=1, keepdims=True), 0)
        on = rows[inside[t]]
        by_score[t, on, truth[t, on]] -= 1
        right[on] += scores[t, on, truth[t, on]]
        if t:
            weighted = local[t] * back
            pairs = ahead[t - 1][:, :, None] * weighted[:, None, :] * moves
            pairs /= pairs.sum(axis=(1, 2), keepdims=True)
            by_step += pairs[inside[t]].sum(axis=0)
            np.add.at(by_step, (truth[t - 1, on], truth[t, on]), -1)
            right[on] += steps[truth[t - 1, on], truth[t, on]]
            before = weighted @ moves.T
            back = np.where(inside[t][:, None], before / before.sum(axis=1, keepdims=True), back)
    right += first[truth[0]]
    mean = float((logs.sum(axis=0) - right).mean())
    return mean, by_score / size, by_step / size, by_score[0].sum(axis=0) / size


def marginals(scores: Numbers, steps: Numbers, first: Numbers) -> Floats:
    """The probability of each label at each place of one sequence, (T, L)."""
    moves = np.exp(steps.astype(np.float64))
    local = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64))
    ahead, found = np.empty(scores.shape), np.empty(scores.shape)
    for t in range(len(scores)):
        value = local[t] * (np.exp(first.astype(np.float64)) if t == 0 else ahead[t - 1] @ moves)
        ahead[t] = value / value.sum()
    back = np.ones(scores.shape[1])
    for t in range(len(scores) - 1, -1, -1):
        share = ahead[t] * back
        found[t] = share / share.sum()
        back = moves @ (local[t] * back)
        back /= back.sum()
    return found


def allowed(labels: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which label may follow which, (L, L), and which may come first, of BIO labels: an I continues its kind."""
    follows = [[after[:1] != "I" or before[1:] == after[1:] for after in labels] for before in labels]
    return np.array(follows), np.array([label[:1] != "I" for label in labels])


def best_path(scores: Numbers, follows: NDArray[np.bool_], begins: NDArray[np.bool_]) -> list[int]:
    """The labels with the highest sum of ``scores`` (T, L) among what is allowed; of equals the first."""
    moves = np.where(follows, 0.0, -np.inf)
    value = np.where(begins, scores[0], -np.inf)
    chosen = []
    for row in scores[1:]:
        paths = value[:, None] + moves
        chosen.append(paths.argmax(axis=0))
        value = paths.max(axis=0) + row
    path = [int(value.argmax())]
    for before in reversed(chosen):
        path.append(int(before[path[-1]]))
    return path[::-1]
