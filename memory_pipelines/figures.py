"""Pictures for the metadata of a run: a figure that needs no display, as PNG, as Markdown.

Belongs here: what every picture shares. Does not belong here: what is drawn.
"""

import base64
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 80
COLOURS = ("#4c72b0", "#c44e52", "#55a868", "#8172b3", "#ccb974", "#64b5cd")


def figure(title: str, x: str, y: str, size: tuple[float, float] = (4.8, 3.4)) -> tuple["Figure", "Axes"]:
    """A figure of one plot, ``size`` in inches; matplotlib's global state is not touched."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(made)
    axes = made.add_subplot()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return made, axes


def png(drawn: "Figure") -> bytes:
    """Equal figures give equal bytes."""
    buffer = BytesIO()
    drawn.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def markdown(title: str, picture: bytes) -> str:
    """The picture as Markdown that needs no file: a data URI."""
    return f"![{title}](data:image/png;base64,{base64.b64encode(picture).decode()})"
