"""What runs inside the sandbox: it gives up all rights, sets limits, and runs the code.

It is read as text and handed to the interpreter, so it imports nothing but the standard library.
The settings and the code come by standard input, as one JSON line: ``{"code": ..., "uid": ...,
"keyctl": ..., "memory_bytes": ..., "file_bytes": ..., "cpu_seconds": ..., "processes": ...}``.
Without ``uid`` it stays who it is; without ``keyctl``, the number of that system call, it keeps the
keys of its session.
"""


def _main() -> None:
    import ast
    import json
    import os
    import resource
    import sys
    import traceback

    task = json.loads(sys.stdin.buffer.readline())
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if task["keyctl"] is not None:
        import ctypes

        # A new session without keys. Where the kernel has no keys, it fails, and none are there.
        ctypes.CDLL(None).syscall(task["keyctl"], 1, None)
    if os.getuid() == 0 and task["uid"] is not None:
        os.setgroups([])
        os.setresgid(task["uid"], task["uid"], task["uid"])
        os.setresuid(task["uid"], task["uid"], task["uid"])
    limits = {
        resource.RLIMIT_AS: task["memory_bytes"],
        resource.RLIMIT_FSIZE: task["file_bytes"],
        resource.RLIMIT_CPU: task["cpu_seconds"],
        resource.RLIMIT_NPROC: task["processes"],
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }
    for name, value in limits.items():
        if value is not None:
            resource.setrlimit(name, (value, value))
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    try:
        tree = ast.parse(task["code"], "code.py")
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        # This is the one place where code of a model runs: inside, with nothing to harm.
        exec(compile(tree, "code.py", "exec"), names)
        if last is not None:
            value = eval(compile(last, "code.py", "eval"), names)
            if value is not None:
                print(repr(value))
    except SystemExit:
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        shown = [frame for frame in frames if frame.filename == "code.py"]
        lines = ["Traceback (most recent call last):\n"] if shown else []
        lines += [f'  File "code.py", line {frame.lineno}, in {frame.name}\n' for frame in shown]
        lines += traceback.format_exception_only(error)
        sys.stdout.flush()
        sys.stderr.write("".join(lines))
        sys.exit(1)


if __name__ == "__main__":
    _main()
