"""The explorer: the topics of a model and its documents as one HTML file that works offline.

`page.py` puts the file together, `payload.py` its data, in the format of `packing.py`. The program of the page is built
from explorer/ at the root of the repository (`make explorer`), whose result is explorer.js, explorer.css and
explorer.licences.md, the licences of what the program contains.
"""

from .page import PageOptions, explorer_page, write_page

__all__ = ["PageOptions", "explorer_page", "write_page"]
