"""The signs of too small pieces are counted as a reader counts them."""

import ast

from benchmarks.size import called_once, imported, imports_inside

MODULE = ast.parse("""
import json
from agenteval import text
from agenteval.records.run import Run

def public():
    import torch
    if text:
        from agenteval.store import Store
    return _once() + _twice() + _twice()

def _once(): ...
def _twice(): ...

class Public:
    def _unused(self): ...
    def __len__(self): return self._method()
    def _method(self): ...
""")


def test_private_functions_are_counted_by_the_places_that_name_them():
    assert called_once(MODULE) == (4, 2)  # _once and _method of _once, _twice, _unused, _method


def test_imports_inside_functions_are_found_below_conditions_too():
    assert len(imports_inside(MODULE)) == 2


def test_a_module_imported_by_name_from_its_package_is_an_import_of_it():
    assert {"agenteval.text", "agenteval.records.run", "agenteval.store"} <= imported(MODULE, "")
