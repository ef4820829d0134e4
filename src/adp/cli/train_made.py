"""What `adp train` says and does about data that it makes first (`data.make`)."""

from __future__ import annotations

from adp.cli.mapped_text import mapped_facts
from adp.cli.text import counted, print_json, progress_bar, say, stdout_to_stderr
from adp.core.config_mapping import MappedConfig
from adp.trainers.config import TrainConfig
from adp.workflows.made_training import is_untried, makes_data, try_trained, with_made_data


def made_data(
    config: TrainConfig,
    other: MappedConfig | None,
    target: str | None,
    switches: tuple[bool, bool, bool],
) -> TrainConfig | None:
    """Make the data of a training, where it makes some.

    Args:
        config: the run.
        other: what was mapped, of the file of another system.
        target: folder of the run; None for a dry run without one.
        switches: resume, dry run, JSON.

    Returns:
        The configuration with its data; None when there is nothing more to do: in a dry run, and
        when the training was finished and only its trial was missing.
    """
    resume, dry_run, as_json = switches
    if not makes_data(config):
        section = config.data.make
        if section is not None and (section.test_count or section.test_cases) and not as_json:
            say("a store is named: test cases go with data that are made; adp eval tries the model")
        return config
    if dry_run or target is None:
        _say_make(config, other, as_json=as_json)
        return None
    with (
        stdout_to_stderr(wanted=as_json),
        progress_bar("making data", quiet=as_json) as progress,
    ):
        config = with_made_data(config, target, resume=resume, progress=progress)
    if not (resume and is_untried(config, target)):
        return config
    try_made(config, target, as_json=as_json)
    return None


def _say_make(config: TrainConfig, other: MappedConfig | None, *, as_json: bool) -> None:
    """Say that the data would be made; how many rows that gives is not known before."""
    assert config.data.make is not None
    if as_json:
        return print_json({"make": config.data.make.model_dump(mode="json"), **mapped_facts(other)})
    say(f"the data would be made first: {config.data.make.strategy}")
    say("dry run: nothing was made, and nothing was trained")


def try_made(config: TrainConfig, target: str, *, as_json: bool) -> None:
    """Try what was trained on the test cases, if it is still to be done, and print the figures."""
    if not is_untried(config, target):
        return
    with stdout_to_stderr(wanted=as_json):
        value = try_trained(config, target)
    if value is None or as_json:
        return
    for name in ("tool_accuracy", "format_accuracy", "execution_accuracy", "response_quality"):
        say(f"{name}: {value[name]:.3f}")
    say(f"{counted(value['total_cases'], 'test case')}, in {target}/evaluation_results.json")
