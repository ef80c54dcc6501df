"""The local viewer, and the page for raters without a server."""
