"""``adp train``: from a store to a trained adapter, by TRL, PEFT, accelerate and DeepSpeed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from adp.cli.mapped_text import mapped_facts, say_mapped
from adp.cli.push_model import push_run
from adp.cli.text import epilog, print_json, progress_bar, say
from adp.cli.train_made import made_data, try_made
from adp.cli.train_report import say_done, say_plan
from adp.trainers.config import ABSENT
from adp.trainers.config_file import read_config
from adp.trainers.method import TrainingPlan
from adp.trainers.run import TrainOptions, plan_run, train
from adp.workflows.push_model import check_push, push_model
from adp.workflows.training_suite import SCORING, with_suite
from adp_schema.errors import HubError, UsageError

app = typer.Typer(
    name="train",
    help="Train a model on a store: SFT, DPO, KTO, GRPO, distillation, reward models.",
    epilog=epilog("adp train sft dataset --model tiny -o run", 2, 3, 4, 5, 10, 11),
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

StoreArgument = Annotated[
    str | None, typer.Argument(metavar="STORE", help="What to train on; in place of data.store.")
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Configuration; also train_lora.json of M3 and the JSON of Tiny Tool Use.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="M", help="A folder, a name on the Hub, or tiny for trials."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change the configuration: lora.r=64."),
]
OutOption = Annotated[
    str | None, typer.Option("--out", "-o", metavar="OUT", help="Folder for what comes out.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with the run that OUT holds.")]
LaunchOption = Annotated[
    int | None, typer.Option("--launch", min=1, metavar="N", help="Train in N processes.")
]
ZeroOption = Annotated[
    int | None, typer.Option("--zero", metavar="2|3", help="DeepSpeed's ZeRO; not tested.")
]
FsdpOption = Annotated[
    bool, typer.Option("--fsdp", help="Split the model by FSDP2; not tested on GPUs.")
]
DryOption = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be trained, and stop.")
]
PythonOption = Annotated[
    bool,
    typer.Option(
        "--allow-python",
        help="Let rewards be Python functions, module:function, and an environment FILE.py:NAME.",
    ),
]
EnvOption = Annotated[
    str | None,
    typer.Option(
        "--env",
        "-e",
        metavar="E",
        help="Let the model act in this environment: NAME[:key=value,...]; for grpo.",
    ),
]
TasksOption = Annotated[
    str | None,
    typer.Option(
        "--tasks",
        "-t",
        metavar="T",
        help="Tasks of --env: a file, a store, or SPLIT:COUNT[:SEED]; by default train:100.",
    ),
]
TeacherOption = Annotated[
    str | None,
    typer.Option(
        "--teacher",
        metavar="M",
        help="Whose probabilities are learnt: a folder of a model, an adapter or a run, or a name "
        "on the Hub.",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop when a row lacks something of the store.")
]
PushOption = Annotated[
    str | None,
    typer.Option("--push", metavar="OWNER/NAME", help="Push the result to the Hub; private."),
]
PublicOption = Annotated[bool, typer.Option("--public", help="With --push: let everybody see it.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the record as JSON.")]


def _command(method: str, summary: str) -> None:
    """Make the command of a method."""

    def command(
        store: StoreArgument = None,
        config: ConfigOption = None,
        model: ModelOption = None,
        out: OutOption = None,
        settings: SetOption = None,
        resume: ResumeOption = False,
        launch: LaunchOption = None,
        zero: ZeroOption = None,
        fsdp: FsdpOption = False,
        dry_run: DryOption = False,
        allow_python: PythonOption = False,
        strict: StrictOption = False,
        push: PushOption = None,
        public: PublicOption = False,
        as_json: JsonOption = False,
    ) -> None:
        more = _given(method, store, model, (launch, zero, fsdp or None))
        switches = (resume, dry_run, as_json, allow_python, strict)
        _train(config, settings or [], more, out, switches, (push, public))

    _add(command, method, summary)


def _acting_command(method: str, summary: str) -> None:
    """Make the command of a method whose model may act in an environment."""

    def command(
        store: StoreArgument = None,
        config: ConfigOption = None,
        model: ModelOption = None,
        env: EnvOption = None,
        tasks: TasksOption = None,
        out: OutOption = None,
        settings: SetOption = None,
        resume: ResumeOption = False,
        launch: LaunchOption = None,
        zero: ZeroOption = None,
        fsdp: FsdpOption = False,
        dry_run: DryOption = False,
        allow_python: PythonOption = False,
        strict: StrictOption = False,
        push: PushOption = None,
        public: PublicOption = False,
        as_json: JsonOption = False,
    ) -> None:
        more = _given(method, store, model, (launch, zero, fsdp or None))
        acting = {"grpo.environment.name": env, "grpo.environment.tasks": tasks}
        more |= {path: value for path, value in acting.items() if value is not None}
        switches = (resume, dry_run, as_json, allow_python, strict)
        _train(config, settings or [], more, out, switches, (push, public))

    _add(command, method, summary)


def _taught_command(method: str, summary: str) -> None:
    """Make the command of a method with a teacher."""

    def command(
        store: StoreArgument = None,
        config: ConfigOption = None,
        model: ModelOption = None,
        teacher: TeacherOption = None,
        out: OutOption = None,
        settings: SetOption = None,
        resume: ResumeOption = False,
        launch: LaunchOption = None,
        zero: ZeroOption = None,
        fsdp: FsdpOption = False,
        dry_run: DryOption = False,
        allow_python: PythonOption = False,
        strict: StrictOption = False,
        push: PushOption = None,
        public: PublicOption = False,
        as_json: JsonOption = False,
    ) -> None:
        more = _given(method, store, model, (launch, zero, fsdp or None))
        if teacher is not None:
            more["distill.teacher_model_name_or_path"] = teacher
        switches = (resume, dry_run, as_json, allow_python, strict)
        _train(config, settings or [], more, out, switches, (push, public))

    _add(command, method, summary)


def _given(
    method: str,
    store: str | None,
    model: str | None,
    launch: tuple[int | None, int | None, bool | None],
) -> dict[str, Any]:
    """What stands in the place of the configuration's, by its path there."""
    values = {
        "method": method,
        "data.store": store,
        "model.model_name_or_path": model,
        "launch.processes": launch[0],
        "launch.zero": launch[1],
        "launch.fsdp": launch[2],
    }
    return {path: value for path, value in values.items() if value is not None}


def _add(command: Callable[..., None], method: str, summary: str) -> None:
    command.__doc__ = (
        f"{summary}\n\nBefore it starts it prints rows, tokens, what was dropped and the steps to "
        "come. OUT gets the adapter, a record of the run, the log and the curve of the loss. "
        "docs/train-config.md lists all settings."
    )
    app.command(method, short_help=summary, epilog=epilog(_EXAMPLES[method], 2, 3, 4, 5, 10, 11))(
        command
    )


_EXAMPLES = {
    "sft": "adp train sft dataset --model tiny -o run",
    "dpo": "adp train dpo --config train.yaml --set dpo.beta=0.2 -o run",
    "kto": "adp train kto --config train.yaml -o run",
    "reward": "adp train reward pairs --model tiny -o run",
    "distill": "adp train distill dataset --model Qwen/Qwen3-0.6B --teacher Qwen/Qwen3-8B -o run",
    "grpo": "adp train grpo --env toolworld --tasks train:200 --model out/model -o run",
}


def _train(
    path: str | None,
    settings: list[str],
    more: dict[str, Any],
    out: str | None,
    switches: tuple[bool, bool, bool, bool, bool],
    pushed: tuple[str | None, bool],
) -> None:
    resume, dry_run, as_json, allow_python, strict = switches
    config, other = read_config(path, settings, more)
    # Machine 0 alone writes the result, and so pushes it.
    repo = pushed[0] if config.launch.machine_rank == 0 else None
    if repo is not None:
        check_push(repo, public=pushed[1])
    config = with_suite(config)
    if other is not None and not as_json:
        say_mapped(other, path or "")
    target = out or config.output_dir
    if target is None and not dry_run:
        raise UsageError("say where the result goes: -o OUT; or only look: --dry-run")
    made = made_data(config, other, target, switches[:3])
    if made is None:
        return None
    config = made
    with (
        progress_bar("preparing", quiet=as_json) as progress,
        progress_bar("training", "steps", quiet=as_json) as steps,
    ):
        if dry_run:
            plan = plan_run(
                config, progress, allow_python=allow_python, strict=strict, scoring=SCORING
            )
        else:

            def begin(plan: TrainingPlan) -> None:
                progress.stop()
                say_plan(config, plan)

            words = ["adp", *sys.argv[1:]]
            on_plan = None if as_json else begin
            options = TrainOptions(
                resume, words, not as_json, on_plan, allow_python, steps, strict, SCORING
            )
            done = train(config, str(target), options, progress)
    if dry_run:
        if as_json:
            return print_json({"plan": plan.plain(), **mapped_facts(other)})
        say_plan(config, plan)
        return say("dry run: nothing was trained")
    if as_json:
        print_json({**(done.record or {}), **mapped_facts(other)})
    else:
        say_done(done, str(target))
    try_made(config, str(target), as_json=as_json)
    if repo is not None:
        _push(str(target), repo, public=pushed[1], quiet=as_json)


def _push(target: str, repo: str, *, public: bool, quiet: bool) -> None:
    """Push what was trained; when that fails, it is said how to do it without training again."""
    try:
        if quiet:
            push_model(target, repo, public=public)
        else:
            push_run(target, repo, public=public)
    except HubError as error:
        raise HubError(
            f"{error}; what was trained is in {target}, and this pushes it: "
            f"adp push-model {target} {repo}{' --public' if public else ''}"
        ) from error


_command("sft", "Train on the agent's own steps (supervised fine-tuning).")
_command("dpo", "Train on pairs: prefer the better side (direct preference optimisation).")
_command("kto", "Train on good and bad trajectories that are no pairs (KTO).")
_command("reward", "Train a reward model on pairs: a number for a conversation.")
_taught_command("distill", "Train on the probabilities of a teacher (GKD, on-policy distillation).")
_acting_command("grpo", "Train on the model's own answers or episodes, by rewards (GRPO).")


@app.command(
    "ppo",
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def ppo() -> None:
    """Say what there is in place of PPO, whatever options follow."""
    raise UsageError(f"there is no ppo here: {ABSENT['ppo']}")
