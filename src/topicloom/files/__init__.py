"""Files and directories: written whole or not at all, by one process at a time; JSON, lists of lines, checksums."""

from .content import read_json, read_lines, write_json, write_lines
from .digests import check_digests, file_digest, plain_file, read_manifest, write_manifest
from .kinds import holds_corpus, holds_model, holds_stopped_run
from .leftovers import put_back
from .locks import lock_directory
from .paths import as_path
from .whole import read_whole
from .writing import atomic_directory, atomic_file, full_disk_names, link_or_copy, put_in_place, require_free

__all__ = [
    "as_path",
    "atomic_directory",
    "atomic_file",
    "check_digests",
    "file_digest",
    "full_disk_names",
    "holds_corpus",
    "holds_model",
    "holds_stopped_run",
    "link_or_copy",
    "lock_directory",
    "plain_file",
    "put_back",
    "put_in_place",
    "read_json",
    "read_lines",
    "read_manifest",
    "read_whole",
    "require_free",
    "write_json",
    "write_lines",
    "write_manifest",
]
