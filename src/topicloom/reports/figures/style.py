"""What the pictures share: colours."""

from __future__ import annotations

BLACK, GREY, BLUE, PALE = "#111111", "#555555", "#2f5d8a", "#bfd3e6"
