"""A tokenizer of about 300 words for the texts of toolworld.

Names are cut into their syllables by a regular expression, so that equal names always become equal
tokens; BPE may cut a name differently after other letters. Every printable ASCII character is a
token too, so all ASCII text comes back as it was.
"""

import re
import string

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast  # noqa: TID253

from adp.rollouts.environments.toolworld.toolset import RENAMED, ROLES
from adp.rollouts.environments.toolworld.world import KEYS, SYLLABLES, WORDS
from adp.rollouts.environments.toolworld.world_environment import SYSTEM

SPECIAL = ("<|pad|>", "<|unk|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>")
MARKS = ("<tool_call>", "</tool_call>")

# The tools stand in the prompt in a short form: follow(entity, relation).
TEMPLATE = """\
{%- set system = messages[0].content if messages and messages[0].role == 'system' else '' %}
{%- if system or tools %}
    {{- '<|system|>' + system }}
    {%- for tool in tools or [] %}
        {{- '\\n' + tool.function.name + '(' }}
        {{- (tool.function.parameters.properties or {}) | list | join(', ') + ')' }}
    {%- endfor %}
    {{- '<|end|>' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|assistant|>' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {{- '<tool_call>{\\"name\\": ' + (call.function.name | tojson) }}
            {{- ', \\"arguments\\": ' }}
            {{- call.function.arguments if call.function.arguments is string
                else call.function.arguments | tojson }}
            {{- '}</tool_call>' }}
        {%- endfor %}
        {{- '<|end|>' }}
    {%- elif message.role != 'system' or not loop.first %}
        {{- '<|' + message.role + '|>' + message.content + '<|end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}
"""

_PROSE = (
    SYSTEM,
    "what is the sum of the and? which has the greater, or?",
    "Error: busy, try again",
    "Error: there is no entity of that name",
    "name arguments entity relation attribute",
)
_RUNS = ('{"', '": "', '": {"', '", "', '"}}', '": ', ', "', "}}", '"}')


def words() -> list[str]:
    """The words of the world.

    Those of the prose have a second token with a space before it. Names, keys and values have not:
    a value is the same token in a result and in an answer, so it can be copied.
    """
    keys = [*KEYS, *(word for values in WORDS.values() for word in values)]
    unseen = [word for name, arguments in RENAMED.values() for word in (name, *arguments)]
    prose = re.findall(r"[A-Za-z]+", " ".join([*_PROSE, *ROLES, *unseen]))
    prose = [word for word in dict.fromkeys(prose) if len(word) > 1 and word not in keys]
    return [*keys, *prose, *(" " + word for word in prose)]


def build_tokenizer(known_words=None):
    """The tokenizer, with a chat template.

    Args:
        known_words: words that are one token each; None: those of the world.
    """
    pieces = [*(words() if known_words is None else known_words), *_RUNS]
    vocabulary = [*SPECIAL, *pieces, *SYLLABLES, "\n", *string.printable[:95]]
    known = {token: index for index, token in enumerate(dict.fromkeys(vocabulary))}
    backend = Tokenizer(models.WordLevel(known, unk_token="<|unk|>"))
    longest = sorted(pieces, key=len, reverse=True)
    wordy = [re.escape(piece) + r"(?![a-z])" for piece in longest if piece[-1].isalpha()]
    runs = [re.escape(piece) for piece in longest if not piece[-1].isalpha()]
    pattern = "|".join([*wordy, *runs, "[BDFGHKLMNPRSTVWZ][aeiou]", "[\\s\\S]"])
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    backend.decoder = decoders.Fuse()
    backend.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    backend.add_tokens([AddedToken(mark, normalized=False) for mark in MARKS])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<|pad|>",
        unk_token="<|unk|>",
        eos_token="<|end|>",
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
