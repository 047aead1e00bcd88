"""tokenizer_reference.py FOLDER: a vocabulary and the tokens of some texts.

Writes to the folder vocab.json and merges.txt, trained here on the words of a few
sentences, and cases.bin: for each text its bytes and its tokens, each with their
number before them, little-endian u32. Written from the description of byte-level
BPE: the pieces are those of GPT-2's regular expression, by Python's re with the
classes spelled out from unicodedata, and pairs are merged in the plain way.
"""

import collections
import functools
import json
import random
import re
import struct
import sys
import unicodedata
from pathlib import Path

folder = Path(sys.argv[1])


category = [unicodedata.category(chr(code))[0] for code in range(sys.maxunicode + 1)]
# Where a class begins or ends.
edges = [code for code in range(1, sys.maxunicode + 1)
         if category[code] != category[code - 1]]


def spelled(kind):
    """The characters of a general category, for a regular expression."""
    bounds = [0, *edges, sys.maxunicode + 1]
    return "".join(f"\\U{first:08x}-\\U{after - 1:08x}"
                   for first, after in zip(bounds, bounds[1:])
                   if category[first] == kind)


# re's own \s has U+001C to U+001F too, which are not White_Space.
space = "\\t\\n\\v\\f\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
letter, number = spelled("L"), spelled("N")
pieces = re.compile(
    f"'s|'t|'re|'ve|'m|'ll|'d| ?[{letter}]+| ?[{number}]+"
    f"| ?[^{space}{letter}{number}]+|[{space}]+(?![^{space}])|[{space}]+")

printed = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
others = [b for b in range(256) if b not in printed]
character = {b: chr(b) for b in printed}
character |= {b: chr(256 + i) for i, b in enumerate(others)}


def split(data):
    text = data.decode("utf-8", "surrogateescape")
    found = pieces.findall(text)
    assert "".join(found) == text
    return ["".join(character[b] for b in piece.encode("utf-8", "surrogateescape"))
            for piece in found]


def merged(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i:i + 2]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


corpus = ("The people's tongues; they've said that the rain in 1998 isn't what it "
          "was. Aaaaaah! hahaha, banana   bananas\n\n\tthere — naïve Größe, "
          "日本語 и русский текст 12345 ١٢٣ ½. ") * 3
words = collections.Counter(split(corpus.encode()))
lists = {word: list(word) for word in words}
merges = []
while len(merges) < 120:
    pairs = collections.Counter()
    for word, symbols in lists.items():
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += words[word]
    best = max(pairs, key=lambda pair: (pairs[pair], pair))
    merges.append(best)
    lists = {word: merged(symbols, best) for word, symbols in lists.items()}
# One that could never come so late in training: its parts are merged earlier.
merges.insert(0, ("a", "a"))
merges = list(dict.fromkeys(merges))
names = dict.fromkeys([character[b] for b in range(256)] + [a + b for a, b in merges])
names["<|endoftext|>"] = None
order = list(names)
random.Random(3).shuffle(order)  # a token's number says nothing of its rank
vocab = {name: i for i, name in enumerate(order)}
ranks = {pair: i for i, pair in enumerate(merges)}


@functools.cache
def tokens_of(piece):
    symbols = list(piece)
    while True:
        pairs = [p for p in zip(symbols, symbols[1:]) if p in ranks]
        if not pairs:
            return [vocab[s] for s in symbols]
        symbols = merged(symbols, min(pairs, key=ranks.get))


def encode(data):
    return [token for piece in split(data) for token in tokens_of(piece)]


r = random.Random(1)
alphabet = "aabehnst'  \n\t\r.,!?0129éßñЖ日本½Ⅷ٣²\u00a0\u2003\u3000\u001c\u0085😀\u0301_"
texts = [b"", b" ", b"  ", b" a", b"a ", b"\n\n a", b"'s", b" 's", b"'S", b"it's'll 'd",
         b"don't they've I'm we'll he'd you're", b"aaaaaaa", b"   \n  x", b"\x00\x01",
         b"\xff\xfe abc", b"\xe2\x82", b"\xe2\x82 x", b"\xed\xa0\x80z", b"\xc3", b"a\xc3\xa9b",
         corpus.encode(), corpus.encode()[::-1], b"<|endoftext|>",
         b"banana" * 300, b"a" * 2001, b" " * 999 + b"x"]
texts += ["".join(r.choice(alphabet) for _ in range(r.randrange(40))).encode()
          for _ in range(600)]
texts += [bytes(r.randrange(256) for _ in range(r.randrange(30))) for _ in range(300)]
# The characters on both sides of each edge of a class, with a letter around them.
near = sorted({code + k for code in edges for k in (-1, 0)} - {*range(0xd800, 0xe000)})
if unicodedata.unidata_version == "14.0.0":
    texts += ["".join(f"a{chr(code)}a" for code in near[i:i + 500]).encode()
              for i in range(0, len(near), 500)]

(folder / "vocab.json").write_text(json.dumps(vocab))
(folder / "merges.txt").write_text(
    "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges), encoding="utf-8")
with open(folder / "cases.bin", "wb") as out:
    for text in texts:
        ids = encode(text)
        out.write(struct.pack("<I", len(text)) + text)
        out.write(struct.pack(f"<I{len(ids)}I", len(ids), *ids))
print(f"{len(texts)} texts, {len(vocab)} tokens, Unicode {unicodedata.unidata_version}")
