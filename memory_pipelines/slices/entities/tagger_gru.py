"""A bidirectional gated recurrent layer (Cho et al. 2014) over sequences of different lengths, forward and backward.

Belongs here: numerics of one layer, in numpy. Does not belong here: what is read or predicted (``tagger_network``),
steps of descent (``tagger_fit``).

Shapes: T steps, B sequences, I inputs, H inner numbers; two directions come first. The candidate's gate is applied
after the product with the inner state (``linear_before_reset`` of ONNX), gates are update, reset, candidate.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


class Layer(NamedTuple):
    """``input`` (2, 3H, I), ``inner`` (2, 3H, H), ``bias`` (2, 6H): of the input, then of the inner state."""

    input: Numbers
    inner: Numbers
    bias: Numbers


class Kept(NamedTuple):
    """What the way back needs of the way there."""

    x: Numbers
    turned: Numbers
    states: Numbers
    update: Numbers
    reset: Numbers
    candidate: Numbers
    inner: Numbers
    lengths: NDArray[np.int64]


def turned(x: Numbers, lengths: NDArray[np.int64]) -> Numbers:
    """Each of the sequences (T, B, ...) backwards within its own length; what is behind its end stays there."""
    step = np.arange(len(x))[:, None]
    index = np.where(step < lengths, lengths - 1 - step, step)
    found: Numbers = x[index, np.arange(x.shape[1])]
    return found


def forward(x: Numbers, lengths: NDArray[np.int64], layer: Layer) -> tuple[Numbers, Kept]:
    """(T, B, I) to (T, B, 2H); rows behind a sequence's end mean nothing, and change nothing before it."""
    steps, size, width = x.shape
    inner = layer.inner.shape[2]
    back = turned(x, lengths)
    flat = (x.reshape(-1, width), back.reshape(-1, width))
    given = np.stack([flat[d] @ layer.input[d].T + layer.bias[d, : 3 * inner] for d in (0, 1)])
    given = given.reshape(2, steps, size, 3 * inner)
    across = np.ascontiguousarray(layer.inner.transpose(0, 2, 1))
    bias = layer.bias[:, None, 3 * inner :]
    states = np.zeros((steps + 1, 2, size, inner), dtype=x.dtype)
    update, reset, candidate, inward = (np.empty((steps, 2, size, inner), dtype=x.dtype) for _ in range(4))
    for t in range(steps):
        before = states[t]
        own = before @ across + bias
        gates = 1 / (1 + np.exp(-(given[:, t, :, : 2 * inner] + own[:, :, : 2 * inner])))
        update[t], reset[t], inward[t] = gates[:, :, :inner], gates[:, :, inner:], own[:, :, 2 * inner :]
        candidate[t] = np.tanh(given[:, t, :, 2 * inner :] + reset[t] * inward[t])
        states[t + 1] = candidate[t] + update[t] * (before - candidate[t])
    out = np.concatenate([states[1:, 0], turned(states[1:, 1], lengths)], axis=-1)
    return out, Kept(x, back, states, update, reset, candidate, inward, lengths)


def backward(slope: Numbers, kept: Kept, layer: Layer) -> tuple[Numbers, Layer]:
    """The loss's slope by the input, and by the layer's numbers, from that by the output; the latter is 0 behind
    a sequence's end."""
    steps, size, width = kept.x.shape
    inner = layer.inner.shape[2]
    outer = np.stack([slope[:, :, :inner], turned(slope[:, :, inner:], kept.lengths)], axis=1)
    given = np.empty((2, steps, size, 3 * inner), dtype=slope.dtype)
    own = np.empty_like(given)
    flow = np.zeros((2, size, inner), dtype=slope.dtype)
    for t in range(steps - 1, -1, -1):
        flow = flow + outer[t]
        update, reset, candidate, before = kept.update[t], kept.reset[t], kept.candidate[t], kept.states[t]
        at_candidate = flow * (1 - update) * (1 - candidate * candidate)
        given[:, t, :, :inner] = flow * (before - candidate) * update * (1 - update)
        given[:, t, :, inner : 2 * inner] = at_candidate * kept.inner[t] * reset * (1 - reset)
        given[:, t, :, 2 * inner :] = at_candidate
        own[:, t, :, : 2 * inner] = given[:, t, :, : 2 * inner]
        own[:, t, :, 2 * inner :] = at_candidate * reset
        flow = flow * update + own[:, t] @ layer.inner
    given, own = given.reshape(2, -1, 3 * inner), own.reshape(2, -1, 3 * inner)
    before = kept.states[:-1].transpose(1, 0, 2, 3).reshape(2, -1, inner)
    read = (kept.x.reshape(-1, width), kept.turned.reshape(-1, width))
    to_input = [(given[d] @ layer.input[d]).reshape(steps, size, width) for d in (0, 1)]
    return to_input[0] + turned(to_input[1], kept.lengths), Layer(
        np.stack([given[d].T @ read[d] for d in (0, 1)]),
        np.stack([own[d].T @ before[d] for d in (0, 1)]),
        np.concatenate([given.sum(axis=1), own.sum(axis=1)], axis=1),
    )
