"""Lessons in copying in the form of a chat: names of a question in calls, results in what follows.

Stage 0 teaches to copy phrases of noise, and the first steps on toolworld undo that. So the model
then reads chats that look like those of toolworld and mean nothing: the words of the question,
the tools, the keys and the values are drawn at random. What can be known is which name stands in a
call:

- the first call has the first name of the question;
- after a result that is a name, the next call has that name; after any other result it has the next
  name of the question; after "busy, try again" the same name again;
- the answer is the last result.

The loss is on these tokens alone. No task of toolworld is in it.
"""

from random import Random

import torch  # noqa: TID253

from adp.rollouts.environments.toolworld.world import SYLLABLES
from examples.loop.tokenizer import words

ROWS, LONGEST = 16, 192
"""Chats a step, and tokens of one at most."""


def lesson(random):
    """One chat, as pieces of text, each with whether its tokens can be known.

    Args:
        random: where it is drawn from.
    """
    some = [word for word in words() if not word.startswith(" ")]

    def word(low=1, high=1):
        return " ".join(random.choices(some, k=random.randint(low, high)))

    def name():
        return "".join(random.choices(SYLLABLES, k=3))

    tools = "".join(
        f"\n{word()}({', '.join(random.choices(some, k=random.randint(1, 3)))})"
        for _ in range(random.randint(2, 6))
    )
    names = [name() for _ in range(random.randint(1, 2))]
    question = " ".join(f"{word(1, 6)} {part}" for part in names)
    pieces = [(f"<|system|>{word(2, 8)}{tools}<|end|><|user|>{question}?<|end|>", False)]
    here, result = names.pop(0), None
    for _ in range(random.randint(1, 4)):
        pieces += call(here, word)
        if random.random() < 0.12:
            pieces.append(("<|tool|>Error: busy, try again<|end|>", False))
            continue
        kind = random.choices(("name", "word", "number"), (6, 2, 2))[0]
        result = {"name": name, "word": word, "number": lambda: str(random.randint(10, 99))}[kind]()
        pieces.append((f"<|tool|>{result}<|end|>", False))
        if kind == "name":
            here = result
        elif names:
            here = names.pop(0)
        else:
            break
    if result is not None:
        pieces += [("<|assistant|>answer: ", False), (result, True), ("<|end|>", False)]
    return pieces


def call(name, word):
    """The pieces of a call with a name in it."""
    before = f'<|assistant|><tool_call>{{"name": "{word()}", "arguments": {{"{word()}": "'
    return [
        (before, False),
        (name, True),
        (f'", "{word()}": "{word()}"}}}}</tool_call><|end|>', False),
    ]


def lesson_batch(tokenizer, random, rows=ROWS):
    """Lessons as token ids, and which of these can be known.

    Returns:
        ids and a mask, both of shape (rows, length).
    """
    ids = torch.full((rows, LONGEST), tokenizer.pad_token_id)
    known = torch.zeros(rows, LONGEST, dtype=torch.bool)
    longest = 0
    for row in range(rows):
        place = 0
        for text, certain in lesson(random):
            tokens = tokenizer.encode(text, add_special_tokens=False)[: LONGEST - place]
            ids[row, place : place + len(tokens)] = torch.tensor(tokens, dtype=torch.long)
            known[row, place : place + len(tokens)] = certain
            place += len(tokens)
        longest = max(longest, place)
    return ids[:, :longest], known[:, :longest]


def lessons(tokenizer, seed):
    """Batches of lessons without end.

    Args:
        tokenizer: of the model.
        seed: other seeds give other lessons.
    """
    random = Random(f"lessons/{seed}")
    while True:
        yield lesson_batch(tokenizer, random)
