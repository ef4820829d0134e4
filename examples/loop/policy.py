"""The tiny model as a policy: all episodes that wait for a turn are answered in one batch."""

import asyncio
import json
import re

import torch  # noqa: TID253
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache  # noqa: TID253

from adp.eval.policy import Request
from adp.eval.turns import Call, Turn, Usage

CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


class Batched:
    """A model in this process.

    Each row draws its own random numbers from the seed of its turn, so a turn does not depend on
    those that are answered with it.

    Args:
        folder: model and tokenizer.
        temperature: 0: the most likely token.
        most: longest turn in tokens.
        rows: most turns of a batch.
    """

    def __init__(self, folder, temperature=0.0, most=48, rows=256):
        self.name = str(folder)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.temperature, self.most, self.rows = temperature, most, rows
        self._waiting, self._worker = [], None

    async def act(self, request: Request) -> Turn:
        """Wait for the batch, and read the answer."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((self._prompt(request), request.seed, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        ids, stopped = await future
        return self._read(ids, stopped)

    async def close(self) -> None:
        """Nothing to free."""

    def _prompt(self, request):
        messages = [dict(message) for message in request.messages]
        for message in messages:
            for call in message.get("tool_calls", ()):
                assert isinstance(call["function"]["arguments"], str)
        text = self.tokenizer.apply_chat_template(
            messages, tools=list(request.tools), tokenize=False, add_generation_prompt=True
        )
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    async def _work(self):
        while self._waiting:
            for _ in range(8):  # let the other episodes ask, too
                await asyncio.sleep(0)
            batch = sorted(self._waiting, key=lambda entry: len(entry[0]))[: self.rows]
            chosen = {id(entry[2]) for entry in batch}
            self._waiting = [entry for entry in self._waiting if id(entry[2]) not in chosen]
            answers = self._generate(
                [prompt for prompt, _, _ in batch], [one for _, one, _ in batch]
            )
            for (_, _, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)

    @torch.inference_mode()
    def _generate(self, prompts, seeds):
        end, longest = self.tokenizer.eos_token_id, max(map(len, prompts))
        ids = torch.full((len(prompts), longest), self.tokenizer.pad_token_id)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :] = torch.tensor(prompt)
            mask[row, longest - len(prompt) :] = 1
        noise = self._noise(seeds)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache, found = DynamicCache(), []
        alive = torch.ones(len(prompts), dtype=torch.bool)
        for step in range(self.most):
            logits = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]
            if noise is not None:
                logits = logits / self.temperature + noise[:, step]
            token = logits.argmax(-1).masked_fill(~alive, end)
            found.append(token)
            alive &= token != end
            if not alive.any():
                break
            ids, positions = token[:, None], positions[:, -1:] + 1
            mask = torch.cat([mask, torch.ones_like(ids)], dim=1)
        rows = torch.stack(found, dim=1).tolist()
        return [(row[: row.index(end)], True) if end in row else (row, False) for row in rows]

    def _noise(self, seeds):
        """Gumbel noise: the largest sum of logit and noise is a draw from the softmax."""
        if not self.temperature:
            return None
        shape = (self.most, self.model.config.vocab_size)
        draws = [torch.rand(shape, generator=torch.Generator().manual_seed(one)) for one in seeds]
        return -torch.log(-torch.log(torch.stack(draws).clamp(1e-9, 1 - 1e-7)))

    def _read(self, ids, stopped):
        text = self.tokenizer.decode(ids)
        usage = Usage(tokens_out=len(ids))
        if not stopped:
            return Turn(text=text, malformed="the turn does not end", usage=usage)
        found = CALL.findall(text)
        rest = CALL.sub("", text).strip()
        if "<tool_call>" in rest or "</tool_call>" in rest or (found and rest):
            return Turn(text=text, malformed="the call is not closed", usage=usage)
        if not found:
            return Turn(text=text, usage=usage)
        calls = []
        for call in found:
            try:
                entry = json.loads(call)
                calls.append(Call(entry["name"], json.dumps(entry["arguments"])))
                assert isinstance(entry["name"], str)
            except (ValueError, KeyError, TypeError, AssertionError):
                return Turn(text=text, malformed="the call is no JSON", usage=usage)
        return Turn(calls=tuple(calls), usage=usage)
