"""One self-contained HTML page about a judge and what it rated. No network, no foreign script.

Usage::

    material = from_store(store, key, source, Wanted(), VerifyOptions())
    write_atomically(Path("report.html"), render(material))
"""

from agenteval.report.elsewhere import from_ratings
from agenteval.report.material import Material
from agenteval.report.page import MOST_RUNS, render
from agenteval.report.stored import Wanted, from_store

__all__ = ["MOST_RUNS", "Material", "Wanted", "from_ratings", "from_store", "render"]
