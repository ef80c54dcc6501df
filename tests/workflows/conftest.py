"""Fixtures: a browser for pages."""

from tests.reporting.conftest import chromium, open_page

__all__ = ["chromium", "open_page"]
