"""Files and directories: written whole or not at all, by one process at a time; JSON, lists of lines, checksums."""

from .content import read_json, read_lines, write_json, write_lines
from .digests import check_digests, file_digest
from .locks import lock_directory
from .writing import atomic_directory, atomic_file, require_free

__all__ = [
    "atomic_directory",
    "atomic_file",
    "check_digests",
    "file_digest",
    "lock_directory",
    "read_json",
    "read_lines",
    "require_free",
    "write_json",
    "write_lines",
]
