"""A model of half a million parameters with random weights, and its first lesson: copying.

Random weights of this size do not learn to copy names from the question into calls in a few
minutes, and without copying nothing else is learnt. Three things help:

- *Local attention at the start.* The model is a Llama with biases of queries and keys, as Qwen2 has
  them. In all layers but the last, half of the heads begin with biases that, through the rotary
  positions, look at the token before. (For a model of type qwen2 AutoTokenizer of transformers 5
  puts Qwen2's own way of cutting words in the place of the tokenizer's.)
- *Lessons in copying*, stage 0: random phrases of random tokens that come again and again. The
  loss is taken where the next token can be known from an earlier copy. No word of toolworld is in
  it but the tokens as such.
- *Lessons in the form of a chat* (`examples.loop.lessons`): names of a question in calls, results
  in what follows, with words, tools and keys at random.

So the start is not blank: it is a structured one, and a synthetic pretraining without a task.
"""

from pathlib import Path

import torch  # noqa: TID253
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: TID253

from adp.trainers.precision import bf16_is_native
from examples.loop.lessons import lessons
from examples.loop.tokenizer import SPECIAL, build_tokenizer

WIDTH, LAYERS, HEADS = 128, 2, 4
"""Of the demo; a head has 32 dimensions at any width."""
THETA = 10_000.0
BIAS = 2.0
"""Length of the biases in each pair of dimensions: about 40 % of the attention goes one back."""

PHRASES, PHRASE = (3, 7), (3, 5)
"""How many phrases a row of stage 0 draws from, and of how many tokens one is."""


COPY_ENOUGH, LESSONS_ENOUGH = 0.97, 0.98
"""Running shares of right tokens at which stage 0 and the lessons end."""


def build_model(tokenizer, seed, width=WIDTH, layers=LAYERS):
    """The model with random weights and biases that look one token back."""
    heads = width // (WIDTH // HEADS)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=1024,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        attention_bias=True,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    model = LlamaForCausalLM(config)
    for layer in model.model.layers[:-1]:
        look_back(layer.self_attn, heads // 2)
    return model


def look_back(attention, heads):
    """Set biases so that these heads look at the token before.

    The rotary embedding turns pair i of a query at m by m w_i, and of a key at n by n w_i. With
    the query turned back by w_i at the start, their product is largest where m - n = 1.
    """
    size = WIDTH // HEADS
    half = size // 2
    speeds = THETA ** (-torch.arange(half) / half)
    query = torch.cat([torch.cos(speeds), -torch.sin(speeds)]) * BIAS
    key = torch.cat([torch.ones(half), torch.zeros(half)]) * BIAS
    with torch.no_grad():
        for head in range(heads):
            attention.q_proj.bias[head * size : (head + 1) * size] = query
            attention.k_proj.bias[head * size : (head + 1) * size] = key


def copy_batch(rows, length, tokens, generator):
    """Rows of repeated random phrases, and whether each token can be known from an earlier copy.

    Returns:
        ids and a mask of the tokens that can be known; both of shape (rows, length).
    """

    def number(low, high):
        return int(torch.randint(low, high + 1, (), generator=generator))

    ids = torch.zeros(rows, length, dtype=torch.long)
    known = torch.zeros(rows, length, dtype=torch.bool)
    for row in range(rows):
        pool = [
            tokens[torch.randint(len(tokens), (number(*PHRASE),), generator=generator)]
            for _ in range(number(*PHRASES))
        ]
        seen, place = set(), 0
        while place < length:
            which = number(0, len(pool) - 1)
            phrase = pool[which][: length - place]
            ids[row, place : place + len(phrase)] = phrase
            known[row, place + 1 : place + len(phrase)] = which in seen
            seen.add(which)
            place += len(phrase)
    return ids, known


def noise(tokens, seed):
    """Batches of stage 0 without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield copy_batch(32, 64, tokens, generator)


def teach(model, batches, most, enough, report=print, name="stage 0"):
    """Train on the tokens of batches that can be known, until most of them are right.

    Args:
        model: the model.
        batches: ids, and which of them can be known.
        most: steps at most.
        enough: running share of right tokens at which it ends.
        report: told how it goes.
        name: what it is called there.

    Returns:
        the number of steps and the last running share.
    """
    native = bf16_is_native(model.device.type)
    if not native:
        report(f"{name}: bf16 is emulated on this machine: training in float32")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98), weight_decay=0.01)
    running, step = 0.0, 0
    model.train()
    for step in range(1, most + 1):
        ids, known = (part.to(model.device) for part in next(batches))
        with torch.autocast(model.device.type, torch.bfloat16, enabled=native):
            hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
            logits = model.lm_head(hidden[known[:, 1:]]).float()
        targets = ids[:, 1:][known[:, 1:]]
        loss = torch.nn.functional.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        right = (logits.argmax(-1) == targets).float().mean().item()
        running = right if step == 1 else 0.9 * running + 0.1 * right
        if step % 50 == 0:
            report(f"{name}: step {step}, loss {loss.item():.2f}, running accuracy {running:.3f}")
        if running >= enough:
            break
    return step, running


def make_base(folder, seed, scale, notice=print):
    """Write the model after stage 0 and the lessons, and its tokenizer, as `adp train` loads it.

    Args:
        folder: where to.
        seed: of weights, noise and lessons.
        scale: its size, and steps at most.
        notice: told how it goes.

    Returns:
        facts about it.
    """
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, seed, scale.width, scale.layers).to(scale.device)
    tokens = torch.arange(len(SPECIAL), len(tokenizer))
    copied = teach(model, noise(tokens, seed), scale.copy_steps, COPY_ENOUGH, notice)
    taught = teach(
        model, lessons(tokenizer, seed), scale.lesson_steps, LESSONS_ENOUGH, notice, "lessons"
    )
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.eval()
    Path(folder).mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {
        "seed": seed,
        "parameters": sum(part.numel() for part in model.parameters()),
        "vocabulary": len(tokenizer),
        "stage0_steps": copied[0],
        "stage0_accuracy": round(copied[1], 3),
        "lesson_steps": taught[0],
        "lesson_accuracy": round(taught[1], 3),
    }
