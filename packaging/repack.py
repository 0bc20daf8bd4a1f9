"""Give the entries of a source distribution one time, one owner and a fixed order: one commit then gives the same bits.

python packaging/repack.py dist/topicloom-1.0.0.tar.gz SECONDS_SINCE_1970
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from pathlib import Path


def repack(path: Path, time: int) -> None:
    """Write a .tar.gz file anew; only the times, owners and order of its entries change."""
    packed = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for entry in sorted(old, key=lambda each: each.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = time, 0, 0, "", ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            entry.pax_headers = {}
            new.addfile(entry, old.extractfile(entry) if entry.isfile() else None)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=time))


if __name__ == "__main__":
    repack(Path(sys.argv[1]), int(sys.argv[2]))
