"""Hostile values for all tests: words, fields, marks, separators, surrogates and bytes.

The campaign in `fuzz` mixes and mutates them, tests with hypothesis draw them beside texts that it makes itself, and
`hostile_run` puts them into every field of a run. Their order is part of what repeats a case of the campaign.
"""

from __future__ import annotations

# What a word of a vocabulary can be and a page, a terminal, a spreadsheet or a path may take for something else.
WORDS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg/onload=alert(3)>",
    "</title></style><style>*{display:none}</style>",
    "--><!--<b>]]>",
    "{{7*7}}${7*7}{%raw%}#{1}<%=1%>{0}%s%n",
    "\u202eevil\u2066x",
    "\x00\x01\x07\x1b[31mred\x1b]0;title\x07\x9b31m\x7f",
    "a\u2028b\u2029c\x85d",
    "=cmd|'C'!A0",
    "A" * 20_000,
    "Z" + "\u0311\u036b\u0313\u036a" * 500,
    "javascript:alert(4)",
    "&lt;script&gt;&#60;b&#62;",
    "[red]bold[/red][link=file:///x]l[/link]",
    "__proto__",
    "constructor",
    "\ufeffx\ufffe\uffff\U0010ffff",
    "'\"`\\",
    "../../etc/passwd",
    "$(id)`id`",
    "\ufffd",
]
# Words, and what a word cannot contain but a text, an id or a label can.
FIELDS = [*WORDS, "a \ud800 b", "\r\nSet-Cookie: x=1\r\n\r\n", "1e999", "NaN", ""]
TITLE = "<script>document.title='hacked'<\u2044script> {{x}} \u202e =1+1"  # no slash, as it is a file's name

# Of the languages and scripts that tokenizers know.
PLAIN_WORDS = [
    "the", "cat", "dog", "and", "stocks", "market", "don't", "l'homme", "über", "naïve", "привет", "мир", "γειά",
    "co-operate", "rock'n'roll", "北京", "天气", "很好", "我们", "東京", "です", "ありがとう", "안녕하세요", "ภาษาไทย",
    "กรุงเทพ", "ກະລຸນາ", "မြန်မာ", "ភាសាខ្មែរ", "हिन्दी", "தமிழ்", "שלום", "مرحبا", "3.14", "2024", "x_y", "a1", "I",
]  # fmt: skip
# What breaks the parsing of texts, markup, numbers, addresses and paths.
MARKS = [
    "\0", "\x01", "\x1a", "\x1b[31m", "\x7f", "\x85", "\xa0", "\xad", "\u200b", "\u200d", "\u2028", "\u2029",
    "\u202e",
    "\ufeff", "\ufffd", "\uffff", "\U0010ffff", "\u0301", "\u0e33", "\u0e4d\u0e32", "\u20e3", "İ", "ß", "ﬁ",
    "ﷺ", "ŉ", "ǰ",
    "Ⅷ", "①", "🙂", "👩\u200d👩\u200d👧", "🇨🇳", "𠮷", "𝔘", "々", "ー", "ｶﾞ", "가", "ㄱ", "’", "ʼ", "'", "-",
    "–", ".", "_",
    "'s", "--", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\t", " ", "   ", "e\u0301" * 3, "a" * 40,
    "中" * 30, "@",
    "<b>", "</b>", "<", ">", "<!--", "-->", "<script>", "</script >", "<style a>", "<a href='x'>", "<![CDATA[",
    "<?xml",
    "<o:p>", "&amp;", "&amp;nbsp;", "&#0;", "&#x110000;", "&#xD800;", "&#9999999;", "&notit;", "&", "&lt;b&gt;",
    "http://a.b/c",
    "www.x", "ftp://", "a@b.co", "a.b+c@d-e.fg.h", "@@", "%s", "{0}", "\\", "\\n", "\\ud800", "null", "NaN",
    "-1", "1e309",
    "=cmd()", "../..", "[", "]", "{", "}", ":", "#", "*", "!", "|", "`", "~",
]  # fmt: skip
SEPARATORS = [",", ";", "\t", "|", '"', '""', "'", " ", "\n", "\r", "\r\n", "\n\n"]
SURROGATES = ["\ud800", "\udfff", "\udc80", "\ud83d\ude00", "\ude00\ud83d"]
# What breaks encodings, separators and numbers in binary files.
BYTES = [
    b"\0", b"\xff", b"\xfe", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x80", b"\xe4\xb8", b"\n", b"\r", b"\r\n", b"\x1a", b'"', b'""', b",", b"\t", b"{", b"[", b"\\u",
    b"\x00\x00\x00\x80",
    b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"9" * 20, b"-1", b"nan", b"1e999", b"\xe2\x80\xa8", b" " * 9,
    b"\x1f\x8b",
]  # fmt: skip
