"""The explorer: the topics of a model and its documents as one HTML file that works offline.

`make explorer` builds the program of the page from explorer/ at the root of the repository. Its result is explorer.js,
explorer.css and explorer.licences.md, the licences of what the program contains.
"""

from .page import PageOptions, explorer_page, write_page

__all__ = ["PageOptions", "explorer_page", "write_page"]
