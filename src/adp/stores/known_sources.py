"""Well-known data sets of agent trajectories: their licenses, and which must not be uploaded again.

The facts come from the cards and licenses of the data sets. They may have changed since, so a
license that a trajectory states itself wins over this table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class DataSource:
    """A data set that others are made from.

    Attributes:
        name: how people know it.
        pattern: matches the names it goes by, in lower case with a hyphen between words.
        license: what its card says, as an id of `adp.stores.licenses`; None when it says nothing.
        url: where it is, without ``https://``.
        gated: whether one must accept terms before one gets it.
        evaluation: whether it is there to test models with, so that it must not spread.
        test_split: whether that holds for its test splits only.
        note: what else is to be known.
    """

    name: str
    pattern: str
    license: str | None
    url: str = ""
    gated: bool = False
    evaluation: bool = False
    test_split: bool = False
    note: str = ""


_HUB = "huggingface.co/datasets/"

SOURCES: tuple[DataSource, ...] = (
    # ---- not for everybody, or not for everything --------------------------------------
    DataSource("APIGen-MT", "apigen-mt(-5k)?", "cc-by-nc-4.0", _HUB + "Salesforce/APIGen-MT-5k",
           gated=True, note="made with GPT-4: not for models that compete with OpenAI"),
    DataSource("xLAM function calling", "xlam-function-calling(-60k)?", "cc-by-4.0",
           _HUB + "Salesforce/xlam-function-calling-60k", gated=True),
    DataSource("MiroVerse", "miroverse(-v0-1)?", "cc-by-nc-4.0", gated=True),
    DataSource("SWE-chat", "(salt-nlp-)?swe-chat", "odc-by", _HUB + "SALT-NLP/SWE-chat",
           gated=True),
    DataSource("daVinci-Dev", "(gair-)?davinci-dev", None, gated=True,
           note="licenses of several kinds"),
    DataSource("CoALM-IT", "(coalm|calm)-it", "cc-by-nc-4.0", _HUB + "uiuc-convai/CoALM-IT"),
    DataSource("CRMArena", "crmarena(-?pro)?", "cc-by-nc-4.0"),
    DataSource("MMAT-1M", "mmat-1m", "cc-by-nc-sa-4.0", _HUB + "VIS-MPU-Agent/MMAT-1M",
           note="parts are Apache-2.0 and CC-BY-4.0"),
    DataSource("Cognitive Kernel-Pro SFT", "cognitivekernel-pro(-sft)?", "academic"),
    DataSource("OpenManus-RL", "(charliedreemur-)?openmanus-rl", None,
           _HUB + "CharlieDreemur/OpenManus-RL",
           note="Apache-2.0, but parts are CC-BY-NC-4.0"),
    DataSource("Mind2Web, multimodal", "(mind2web-multimodal|multimodal-mind2web)", "openrail",
           test_split=True, note="its authors ask not to upload the test data again"),
    DataSource("Mind2Web", "mind2web", "cc-by-4.0", _HUB + "osunlp/Mind2Web", test_split=True,
           note="its authors ask not to upload the test data again"),
    # ---- there to test models with -----------------------------------------------------
    DataSource("WebArena, solved", "webarena-successful", None, evaluation=True),
    DataSource("BFCL", "(bfcl|berkeley-function-call(ing)?-leaderboard)(-v[0-9]+)?", "apache-2.0",
           evaluation=True),
    DataSource("tau-bench", "tau2?-bench", "mit", evaluation=True),
    DataSource("ToolAlpaca, evaluation", "toolalpaca-eval(-simulated|-real)?", "apache-2.0",
           evaluation=True),
    DataSource("Terminal-Bench, development", "openthoughts-tb-dev", "apache-2.0", evaluation=True,
           note="carries canary lines"),
    # ---- no license stated -------------------------------------------------------------
    DataSource("AgentTraj-L", "agenttraj-l", None, _HUB + "AgentGym/AgentTraj-L"),
    DataSource("AgentRefine", "agentrefine", None),
    DataSource("MobileIAR", "mobileiar", None),
    DataSource("R2E-Gym SFT", "r2e-?gym-sft(-trajectories)?", None,
           _HUB + "R2E-Gym/R2EGym-SFT-Trajectories"),
    DataSource("BitAgent tool calling", "bitagent(-tool-calling)?", None,
           _HUB + "BitAgent/tool_calling"),
    DataSource("CodeScout", "codescout", None),
    DataSource("SWE-Star", "(logicstar-)?swe-star", None),
    # ---- for everybody -----------------------------------------------------------------
    DataSource("AgentInstruct", "(agentinstruct|agenttuning-(alfworld|db|kg|mind2web|os|webshop))",
           "apache-2.0", _HUB + "zai-org/AgentInstruct",
           note="some copies say CC-BY-NC-4.0"),
    DataSource("Orca AgentInstruct", "orca-agentinstruct", "cdla-permissive-2.0"),
    DataSource("Agent-FLAN", "agent-flan", "apache-2.0", _HUB + "internlm/Agent-FLAN"),
    DataSource("AgentBank", "agentbank", "apache-2.0", _HUB + "Solaris99/AgentBank"),
    DataSource("AFM", "afm-(webagent|mhqa|codeagent)-(sft|rl)(-dataset)?", "apache-2.0"),
    DataSource("Lumos", "lumos", "mit"),
    DataSource("ToolAlpaca", "toolalpaca", "apache-2.0"),
    DataSource("ToolLLaMA", "(toolllama|toolbench)", "apache-2.0"),
    DataSource("ToolACE", "toolace", "apache-2.0", _HUB + "Team-ACE/ToolACE"),
    DataSource("ToolMind", "toolmind", "apache-2.0"),
    DataSource("Toucan", "toucan(-1-5m)?", "apache-2.0", _HUB + "Agent-Ark/Toucan-1.5M"),
    DataSource("Glaive function calling", "glaive-function-calling(-v2)?", "apache-2.0",
           _HUB + "glaiveai/glaive-function-calling-v2"),
    DataSource("Hermes function calling", "hermes-function-calling(-v1)?", "apache-2.0"),
    DataSource("Hammer", "xlam-irrelevance-7-5k", "cc-by-4.0",
           _HUB + "MadeAgents/xlam-irrelevance-7.5k"),
    DataSource("Nemotron agentic", "nemotron-agentic(-v1)?", "cc-by-4.0",
           _HUB + "nvidia/Nemotron-Agentic-v1"),
    DataSource("FireAct", "fireact", "mit"),
    DataSource("ETO", "eto(-sft-trajectory)?", "apache-2.0", _HUB + "agent-eto/eto-sft-trajectory"),
    DataSource("WebShop", "webshop", "mit"),
    DataSource("NNetNav", "nnetnav-(live|wa)", "apache-2.0"),
    DataSource("Go-Browse", "go-browse-wa", "mit"),
    DataSource("Synatra", "synatra", "cc-by-sa-4.0"),
    DataSource("CodeActInstruct", "codeactinstruct", "apache-2.0"),
    DataSource("Code-Feedback", "code-feedback", "apache-2.0"),
    DataSource("SWE-Gym", "(swe-gym-)?openhands-sampled-trajectories", "mit",
           _HUB + "SWE-Gym/OpenHands-Sampled-Trajectories"),
    DataSource("SWE-smith", "swe-smith(-trajectories)?", "mit",
           _HUB + "SWE-bench/SWE-smith-trajectories"),
    DataSource("SWE-agent trajectories", "(nebius-)?swe-agent-trajectories", "cc-by-4.0",
           _HUB + "nebius/SWE-agent-trajectories"),
    DataSource("SWE-rebench OpenHands", "(nebius-)?swe-rebench-openhands(-trajectories)?",
           "cc-by-4.0"),
    DataSource("SWE-Zero", "(alienkevin-|nvidia-)?swe-zero(-12m|-openhands)?", None,
           note="Apache-2.0 or CC-BY-4.0, depending on the copy"),
    DataSource("OpenThoughts Agent", "openthoughts-agent(-v1)?-sft(-100k)?", "apache-2.0"),
    DataSource("Jupyter agent", "jupyter-agent-dataset", "apache-2.0"),
    DataSource("OpenResearcher", "openresearcher", "mit"),
    DataSource("LiteCoder terminal", "litecoder-terminal-sft", "mit"),
    DataSource("CoderForge preview", "coderforge-preview", "apache-2.0"),
    DataSource("AgentNet", "agentnet", "mit"),
)  # fmt: skip
"""The table; what comes first wins."""

_COMPILED = [
    (source, re.compile(source.pattern), re.compile(rf"(?:^|.*-){source.pattern}(?:-.*|$)"))
    for source in SOURCES
]
_TEST = re.compile(r"(?:^|.*-)(?:test|eval|evaluation|benchmark)(?:-.*|$)")


def plain(name: str) -> str:
    """A name in lower case, with one hyphen for whatever is no letter or digit."""
    return re.sub(r"[^a-z0-9]+", "-", name[:400].lower()).strip("-")


def find_source(dataset: str | None, url: str | None) -> tuple[DataSource | None, bool]:
    """The known data set that a name or an address stands for.

    Args:
        dataset: name of the data set, such as ``swe-smith`` or ``nebius/SWE-agent-trajectories``.
        url: where it comes from.

    Returns:
        The data set, and whether it is certain: the name is that of the data set, or the address.
        A name that only has its name in it, such as ``my-mind2web-runs``, is a warning and no
        more.
    """
    address = (url or "")[:400].lower().removeprefix("https://")
    for source in SOURCES:
        if source.url and address.rstrip("/").startswith(source.url.lower()):
            return source, True
    texts = [text[:400] for text in (dataset, url) if text]
    ends = [plain(end) for text in texts for end in (text, text.rstrip("/").rsplit("/", 1)[-1])]
    for source, full, _ in _COMPILED:
        if any(full.fullmatch(name) for name in ends):
            return source, True
    for source, _, part in _COMPILED:
        if any(part.fullmatch(plain(text)) for text in texts):
            return source, False
    return None, False


def is_test(split: str | None) -> bool:
    """Whether a split is one to test models with."""
    return split is not None and _TEST.match(plain(split)) is not None
