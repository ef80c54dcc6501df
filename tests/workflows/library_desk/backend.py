"""The library's books and readers. Ids follow from the arguments, so order changes no state."""

from __future__ import annotations

from typing import Any


class Backend:
    """State: who holds which book, and what readers owe."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {
            "books": {
                "Dune": {"holder": None, "shelf": "S4"},
                "Emma": {"holder": "R-17", "shelf": "A1"},
                "Ulysses": {"holder": None, "shelf": "J2"},
            },
            "fees": {"R-17": 0, "R-20": 0, "R-31": 4},
        }

    def find_book(self, title: str) -> dict[str, Any]:
        """Is it in, and where does it stand?"""
        book = self.state["books"].get(title)
        if book is None:
            return {"is_in": False, "shelf": ""}
        return {"is_in": book["holder"] is None, "shelf": book["shelf"]}

    def lend_book(self, title: str, reader_id: str) -> dict[str, Any]:
        """Refused to readers who owe a fee, and for books that are out."""
        if reader_id not in self.state["fees"]:
            raise ValueError(f"there is no reader {reader_id}")
        book = self.state["books"].get(title)
        if book is None or book["holder"] is not None or self.state["fees"][reader_id] > 0:
            return {"lent": False, "due": ""}
        book["holder"] = reader_id
        return {"lent": True, "due": "2031-04-09"}

    def return_book(self, title: str) -> dict[str, Any]:
        """Sets the book free."""
        book = self.state["books"].get(title)
        if book is None or book["holder"] is None:
            raise ValueError(f"{title} is not lent to anybody")
        book["holder"] = None
        return {"days_late": 0}
