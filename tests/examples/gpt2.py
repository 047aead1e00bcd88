"""gpt2.py PROGRAM PAGE: the example writes what PyTorch writes with the model of
PAGE's Python, from the same files: one file, and several with an index.

The weights are random, with such a head that one token is all but certain, so
that a draw is no draw. The vocabulary is that of bytes, in GPT-2's spelling, and
a few merges.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file

CONTEXT, WIDTH, LAYERS, COUNT = 24, 128, 2, 12
PROMPT = "Hello, hello"
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("\u0120", "hello")]


def letters():
    """GPT-2's letter for each byte: its own where it prints."""
    prints = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b if b in prints else next(others)) for b in range(256)]


def vocabulary():
    return letters() + [a + b for a, b in MERGES]


def encoded():
    """The prompt's tokens: the pair "ll" is merged, and " hello" is one token."""
    words = vocabulary()
    return [words.index(w) for w in ("H", "e", "ll", "o", ",", "\u0120hello")]


def page_model(page):
    code = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)[0]
    names = {}
    exec(compile(code, "gpt.md", "exec"), names)
    return names["GPT"](len(vocabulary()), CONTEXT, WIDTH, WIDTH // 64, LAYERS)


def continued(model, tokens):
    tokens = list(tokens)
    for _ in range(COUNT):
        logits = model(torch.tensor([tokens]))[0, -1]
        best = logits.topk(2).values
        assert best[0] - best[1] > 15, best  # sure enough to be drawn
        tokens.append(int(logits.argmax()))
    return tokens


def text_of(tokens):
    byte = {letter: b for b, letter in enumerate(letters())}
    return bytes(byte[x] for t in tokens for x in vocabulary()[t])


def write(folder, state, several):
    with open(os.path.join(folder, "vocab.json"), "w", encoding="utf-8") as f:
        json.dump({word: i for i, word in enumerate(vocabulary())}, f)
    with open(os.path.join(folder, "merges.txt"), "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in MERGES))
    state["h.0.attn.bias"] = torch.ones(1, 1, CONTEXT, CONTEXT)  # as GPT-2's file
    if not several:
        save_file(state, os.path.join(folder, "model.safetensors"))
        return
    names = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    where = {key: names[i % 3] for i, key in enumerate(state)}
    for name in names:
        save_file({k: v for k, v in state.items() if where[k] == name},
                  os.path.join(folder, name))
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": 1}, "weight_map": where}, f)


def main():
    program, page = sys.argv[1], open(sys.argv[2], encoding="utf-8").read()
    torch.manual_seed(3)
    model = page_model(page)
    with torch.no_grad():
        for block in model.h:
            block.mlp.c_proj.weight.mul_(20)
        model.ln_f.weight.mul_(20000)
        tokens = encoded()
        all_tokens = continued(model, tokens)
    assert len(set(all_tokens[len(tokens):])) > 3, all_tokens
    wanted = text_of(all_tokens)
    for several in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, dict(model.state_dict()), several)
            done = subprocess.run(
                [program, "--weights", folder, "--prompt", PROMPT, "--steps",
                 str(COUNT)], stdout=subprocess.PIPE, check=False)
            if done.returncode != 0 or done.stdout != wanted + b"\n":
                sys.exit(f"FAILED: {done.returncode}: {done.stdout!r}, "
                         f"{wanted!r} is wanted")
            os.remove(os.path.join(folder, "merges.txt"))
            done = subprocess.run([program, "--weights", folder],
                                  stderr=subprocess.PIPE, check=False)
            assert done.returncode == 1 and b"merges.txt" in done.stderr, done
    print(f"{COUNT} tokens, twice")


main()
