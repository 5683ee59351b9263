"""How every ONNX model of this library is run.

Belongs here: the options of a session. Does not belong here: a model.
"""

from typing import Any


def session(onnxruntime: Any, source: bytes | str) -> Any:
    """A session on the processor, of a model's bytes or path, with one thread: its own threads would spin between
    texts, and split sums by the machine's number of cores."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
