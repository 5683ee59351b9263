"""Frame of a label table: the columns every labelling step carries over from the exchanges.

Belongs here: Arrow in and out of the labelling steps. Does not belong here: any label.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from memory_pipelines.slices.resources import Named, name_of
from memory_pipelines.stores.vault import untagged
from memory_pipelines.tables import TableSpec

_CARRIED = ("tenant", "subject", "exchange_id", "day", "month", "owner", "bucket")


def own_texts(exchanges: pa.Table) -> list[str]:
    """``own_text`` of each exchange; null counts as empty. Tokens of sensitive fields are bare: a label must not
    depend on whose phone number it is."""
    return [untagged(text or "") for text in exchanges.column("own_text").to_pylist()]


def label_table(
    exchanges: pa.Table, spec: TableSpec, model_set: Named, columns: Mapping[str, Sequence[object] | pa.Array]
) -> pa.Table:
    """One row per exchange in ``spec``'s schema: carried keys, ``model_set`` and the label ``columns``."""
    values: dict[str, object] = {name: exchanges.column(name) for name in _CARRIED}
    values |= {"model_set": pa.repeat(pa.scalar(name_of(model_set), pa.string()), exchanges.num_rows)}
    values |= columns
    arrays = []
    for field in spec.schema:
        value = values[field.name]
        if isinstance(value, pa.Array | pa.ChunkedArray):
            arrays.append(value.cast(field.type))
        else:
            arrays.append(pa.array(value, field.type))
    return pa.table(arrays, schema=spec.schema)
