"""Trained models that are bytes, as the text that the model registry keeps.

Belongs here: packing. Does not belong here: what the bytes mean (``emotion.head``, ``entities.tagger``).
"""

import base64
import binascii
import json

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import canonical_json

FORMAT = 1


def packed(kind: str, content: bytes) -> str:
    """One JSON text; equal bytes give equal texts."""
    return canonical_json({"format": FORMAT, "kind": kind, "content": base64.b64encode(content).decode("ascii")})


def unpacked(kind: str, body: str) -> bytes:
    """The bytes of :func:`packed`. Raises IntegrityError for any other text."""
    try:
        kept = json.loads(body)
        if (kept["format"], kept["kind"]) != (FORMAT, kind):
            raise ValueError("another format")
        return base64.b64decode(kept["content"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise IntegrityError(f"the registered model of {kind} cannot be read: train it again") from None
