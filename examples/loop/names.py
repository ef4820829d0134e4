"""Whether a training learnt to copy: its loss on the names in the calls of an expert.

The loss of the training mixes names with the words of the form, which are soon at nothing; a model
that never learns to copy has a loss on names alone that stays high. The episodes are at tasks of
the split train that are in no pool, so nothing that is measured on decides about a training.
"""

import torch  # noqa: TID253

from adp.rollouts.environments.toolworld import Toolworld
from adp.rollouts.environments.toolworld.world import SYLLABLES
from examples.loop.tokenizer import SPECIAL

ASSISTANT, END = SPECIAL[4], SPECIAL[6]
BATCH = 50


def expert_chat(task):
    """What the expert says and hears at a task, as messages, and the tools."""
    environment = Toolworld()
    messages = list(environment.reset(task).messages)
    while True:
        turn = environment.expert_turn()
        outcome = environment.step(turn)
        calls = [
            {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in turn.calls
        ]
        message = {"role": "assistant", "content": turn.text}
        messages.append(message | ({"tool_calls": calls} if calls else {}))
        messages += [{"role": "tool", "content": result.text} for result in outcome.results]
        if outcome.terminated or outcome.truncated:
            return messages, environment.tools()


def rows(tokenizer, tasks):
    """Token ids of the expert's episodes, and which of them are syllables of names in calls."""
    syllables = set(tokenizer.convert_tokens_to_ids(list(SYLLABLES)))
    call, closed, assistant, end = tokenizer.convert_tokens_to_ids(
        ["<tool_call>", "</tool_call>", ASSISTANT, END]
    )
    for task in tasks:
        messages, tools = expert_chat(task)
        ids = tokenizer.apply_chat_template(messages, tools=tools, return_dict=False)
        inside, marks = False, []
        for token in ids:
            inside = token == call or (inside and token not in (closed, assistant, end))
            marks.append(inside and token in syllables)
        yield ids, marks


def name_loss(folder, tasks):
    """Mean loss of a model on the name tokens in the expert's calls.

    Args:
        folder: the model.
        tasks: tasks of toolworld.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    chosen = list(rows(tokenizer, tasks))
    loss, count = 0.0, 0
    for begin in range(0, len(chosen), BATCH):
        part = chosen[begin : begin + BATCH]
        longest = max(len(ids) for ids, _ in part)
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row, _ in part])
        marks = torch.tensor([[*row, *[False] * (longest - len(row))] for _, row in part])
        lengths = torch.tensor([len(row) for row, _ in part])
        seen = (torch.arange(longest)[None] < lengths[:, None]).long()
        with torch.no_grad():
            logits = model(input_ids=ids, attention_mask=seen).logits[:, :-1][marks[:, 1:]]
        loss += torch.nn.functional.cross_entropy(
            logits, ids[:, 1:][marks[:, 1:]], reduction="sum"
        ).item()
        count += int(marks.sum())
    return round(loss / count, 4)
