"""Pictures: PNG bytes, equal for equal numbers, also where there is nothing to draw."""

import base64
import struct
import subprocess
import sys

import numpy as np

from memory_pipelines.reward.evaluate import Bin
from memory_pipelines.reward.plots import calibration_curve, feature_gain, impact_histogram, markdown

BINS = (Bin(0.0, 0.1, 10, 4.0, 0.05, -0.1), Bin(0.7, 0.8, 5, 2.0, 0.75, 0.7))
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(SIGNATURE)
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_every_picture_is_a_png_of_one_size() -> None:
    scores = np.array([0.0, 0.2, 0.2, 1.0])
    for png in (calibration_curve(BINS), impact_histogram(scores), feature_gain({"emotion": 0.7, "intent": 0.3})):
        assert size(png) == (384, 272)


def test_equal_numbers_give_equal_bytes_and_others_do_not() -> None:
    scores = np.array([0.0, 0.2, 0.2, 1.0])
    assert impact_histogram(scores) == impact_histogram(scores[::-1])
    assert impact_histogram(scores) != impact_histogram(scores / 2)
    assert calibration_curve(BINS) != calibration_curve(BINS[:1])
    assert feature_gain({"a": 0.5, "b": 0.5}) == feature_gain({"b": 0.5, "a": 0.5})


def test_nothing_to_draw_is_an_empty_picture() -> None:
    for png in (calibration_curve(()), impact_histogram(np.zeros(0)), feature_gain({})):
        assert size(png) == (384, 272)


def test_markdown_holds_the_picture() -> None:
    text = markdown("calibration", SIGNATURE)
    assert text == f"![calibration](data:image/png;base64,{base64.b64encode(SIGNATURE).decode()})"


def test_importing_the_reward_model_loads_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "import memory_pipelines.reward.plots, memory_pipelines.reward.promote, memory_pipelines.reward.fit\n"
        "print(sorted({'lightgbm', 'matplotlib', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pyplot_is_never_loaded() -> None:
    calibration_curve(BINS)
    assert "matplotlib.pyplot" not in sys.modules
