"""Deciding constraints: on the graph of orders, with Z3, and by enumeration in the tests."""
