"""Common programs that are not in the table of programs, grouped by what they do with their files.

A program in none of these groups may do anything with its files. A wrong entry lets a protected file be changed. A
missing entry only causes a question, if an argument is a protected file or a folder that contains one.
"""

from __future__ import annotations

from fairlead.policy.bash._words import plain
from fairlead.policy.bash.programs._calls import Access, Effect, Program, ProgramCall
from fairlead.policy.paths._selection import Selection
from fairlead.structs import LIGHT, Struct

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Final  # msgspec reads the annotations
if TYPE_CHECKING:
    from collections.abc import Iterator

WITHOUT_FILES: Final = frozenset(
    {
        *(":", "[", "[[", "alias", "basename", "bg", "break", "cal", "caller", "cd", "chdir", "clear", "compgen"),
        *("continue", "declare", "df", "dig", "dirname", "dirs", "disown", "dmesg", "du", "echo", "exit", "export"),
        *(
            "expr",
            "factor",
            "fairlead",
            "false",
            "fg",
            "free",
            "getconf",
            "getopts",
            "groups",
            "help",
            "history",
            "host",
        ),
        *("hostname", "id", "jobs", "kill", "killall", "let", "local", "locale", "lscpu", "lsof", "man", "nproc"),
        *("nslookup", "pgrep", "ping", "pkill", "popd", "printenv", "printf", "ps", "pushd", "pwd", "read"),
        *("readlink", "readonly", "realpath", "return", "seq", "set", "shift", "sleep", "stty", "sync", "test"),
        *("times", "top", "tput", "tr", "traceroute", "true", "tty", "type", "typeset", "ulimit", "umask", "unalias"),
        *("uname", "unset", "uptime", "users", "wait", "whatis", "whereis", "which", "who", "whoami", "yes"),
    }
)
"""Programs that open none of the files that their arguments name."""

CHECKERS: Final = frozenset(
    {
        # tests
        *("pytest", "py.test", "tox", "nox", "coverage", "jest", "vitest", "mocha", "ava", "karma", "playwright"),
        *("cypress", "nyc", "c8", "phpunit", "rspec", "ctest", "bats", "unittest"),
        # types, style, security
        *("mypy", "dmypy", "pyright", "basedpyright", "pyre", "ty", "flake8", "pylint", "pycodestyle", "pydocstyle"),
        *("bandit", "vulture", "radon", "xenon", "interrogate", "tsc", "vue-tsc", "tslint", "jshint", "knip"),
        *("depcheck", "madge", "shellcheck", "hadolint", "yamllint", "actionlint", "vale", "cspell", "golint"),
        *("golangci-lint", "staticcheck", "phpstan", "psalm", "ansible-lint", "cfn-lint", "tflint", "checkov", "tfsec"),
        *("trivy", "grype", "syft", "semgrep", "snyk", "gitleaks", "trufflehog", "pip-audit", "safety", "pre-commit"),
        *("mdl", "doc8", "import-linter", "lint-imports", "deptry", "publint", "commitlint", "jsonlint"),
        *("ajv", "check-jsonschema", "jsonschema"),
        # size and structure
        *("cloc", "tokei", "scc", "dust", "ncdu", "eza", "exa", "lsd", "ctags", "fzf"),
        # builds
        *("gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "javac", "kotlinc", "swiftc", "ghc", "zig", "nvcc"),
        *("cmake", "ninja", "meson", "bazel", "mvn", "mvnw", "gradle", "gradlew", "sbt", "ant", "dotnet", "msbuild"),
        *("xcodebuild", "swift", "flutter", "dart", "mix", "cabal", "stack", "vite", "next", "nuxt", "webpack"),
        *("rollup", "esbuild", "parcel", "turbo", "nx", "lerna", "storybook", "astro", "gatsby", "ng"),
        *("sphinx-build", "mkdocs", "hugo", "jekyll", "cargo", "go", "terraform", "tofu", "pulumi", "cdk", "helm"),
        # packages
        *("pip", "pip3", "pipx", "uv", "poetry", "pdm", "hatch", "flit", "twine", "conda", "mamba", "npm", "pnpm"),
        *("yarn", "gem", "bundle", "composer", "brew", "apt", "apt-get", "dnf", "yum", "apk", "pacman", "rustup"),
        *("nvm", "pyenv", "rbenv", "volta", "corepack", "asdf", "mise"),
        # servers
        *("uvicorn", "gunicorn", "hypercorn", "flask", "django-admin", "celery", "streamlit", "serve", "http-server"),
        "docker-compose",
    }
)  # fmt: skip
"""Programs that read or build the files that they are given, and write only their own outputs."""

RUNNERS: Final = frozenset({"cargo", "go", "dotnet", "swift", "dart", "zig", "bazel", "stack", "cabal"})
"""Programs whose command `run` runs a program that was built before."""


class _Formatter(Struct, frozen=True):
    names: tuple[str, ...]
    """Patterns of the files that the program formats in a folder."""
    needed: frozenset[str] = frozenset()
    """Options or words of which the program needs one to write files; if empty, it always writes."""
    unless: frozenset[str] = frozenset()
    """Options with which the program does not write."""
    default: bool = False
    """Whether it formats the current folder if it is given no file."""
    skipped: int = 0
    """The number of words before the files: `ruff format`."""

    def __call__(self, call: ProgramCall) -> Iterator[Effect]:
        given = {plain(arg).partition("=")[0] for arg in call.args}
        writes = (not self.needed or self.needed & given) and not self.unless & given
        operands = [arg for arg in call.args if arg[:1] != "-"][self.skipped :]
        for word in (operands or (["."] if self.default else [])) if writes else ():
            # formatters expand quoted patterns themselves
            path = plain(word) if "*" in plain(word) else word
            yield Access("write", path, below=True, if_exists=True, selection=Selection(self.names))


_PYTHON: Final = ("*.py", "*.pyi", "*.ipynb")
_WEB: Final = (
    *("*.js", "*.jsx", "*.mjs", "*.cjs", "*.ts", "*.tsx", "*.mts", "*.cts", "*.vue", "*.svelte"),
    *("*.json", "*.jsonc", "*.json5", "*.css", "*.scss", "*.less", "*.html", "*.md", "*.mdx", "*.yaml", "*.yml"),
    *("*.graphql", "*.gql", "*.hbs"),
)
_SCRIPTS: Final = _WEB[:10]
_CHECK: Final = frozenset({"--check", "--diff", "-c", "--check-only", "--list-different", "-l"})
_FIX: Final = frozenset({"--fix"})
_IN_PLACE: Final = frozenset({"-i", "--in-place", "--inplace"})
_WRITE: Final = frozenset({"-w", "--write"})


def _by_command(**commands: _Formatter) -> Program:
    """Return the function for the effects of a program that formats files with these subcommands."""

    def effects(call: ProgramCall) -> Iterator[Effect]:
        name = next((plain(arg) for arg in call.args if arg[:1] != "-"), "")
        formatter = commands.get(name)
        if formatter is not None:
            yield from formatter(call)

    return effects


FORMATTERS: Final[dict[str, Program]] = {
    "black": _Formatter(_PYTHON, unless=frozenset({"--check", "--diff"})),
    "isort": _Formatter(_PYTHON, unless=_CHECK),
    "autopep8": _Formatter(_PYTHON, needed=_IN_PLACE),
    "yapf": _Formatter(_PYTHON, needed=_IN_PLACE),
    "autoflake": _Formatter(_PYTHON, needed=_IN_PLACE),
    "pyupgrade": _Formatter(_PYTHON),
    "ruff": _by_command(
        format=_Formatter(_PYTHON, unless=_CHECK, default=True, skipped=1),
        check=_Formatter(_PYTHON, needed=frozenset({"--fix", "--fix-only", "--add-noqa"}), default=True, skipped=1),
    ),
    "prettier": _Formatter(_WEB, needed=_WRITE),
    "eslint": _Formatter(_SCRIPTS, needed=_FIX),
    "stylelint": _Formatter(("*.css", "*.scss", "*.less", "*.vue"), needed=_FIX),
    "biome": _Formatter(
        _WEB, needed=frozenset({"--write", "--apply", "--fix", "--apply-unsafe"}), default=True, skipped=1
    ),
    "markdownlint": _Formatter(("*.md", "*.markdown"), needed=frozenset({"--fix", "-f"})),
    "markdownlint-cli2": _Formatter(("*.md", "*.markdown"), needed=_FIX),
    "cargo": _by_command(
        fmt=_Formatter(("*.rs",), unless=_CHECK, default=True, skipped=1),
        fix=_Formatter(("*.rs",), default=True, skipped=1),
        clippy=_Formatter(("*.rs",), needed=_FIX, default=True, skipped=1),
    ),
    "go": _by_command(fmt=_Formatter(("*.go",), default=True, skipped=1)),
    "terraform": _by_command(fmt=_Formatter(("*.tf", "*.tfvars"), unless=_CHECK, default=True, skipped=1)),
    "gofmt": _Formatter(("*.go",), needed=frozenset({"-w"})),
    "goimports": _Formatter(("*.go",), needed=frozenset({"-w"})),
    "gofumpt": _Formatter(("*.go",), needed=frozenset({"-w"})),
    "rustfmt": _Formatter(("*.rs",), unless=frozenset({"--check"})),
    "clang-format": _Formatter(("*.c", "*.h", "*.cc", "*.cpp", "*.hpp"), needed=frozenset({"-i"})),
    "shfmt": _Formatter(("*.sh", "*.bash"), needed=_WRITE),
    "stylua": _Formatter(("*.lua",), unless=frozenset({"--check"})),
    "rubocop": _Formatter(
        ("*.rb", "*.rake", "Rakefile", "Gemfile"),
        needed=frozenset({"-a", "-A", "--autocorrect", "--autocorrect-all", "--auto-correct"}),
        default=True,
    ),
    "taplo": _by_command(
        fmt=_Formatter(("*.toml",), unless=_CHECK, default=True, skipped=1),
        format=_Formatter(("*.toml",), unless=_CHECK, default=True, skipped=1),
    ),
    "yamlfmt": _Formatter(("*.yaml", "*.yml"), unless=frozenset({"-lint", "-dry"}), default=True),
    "codespell": _Formatter(("*",), needed=frozenset({"-w", "--write-changes"}), default=True),
    "typos": _Formatter(("*",), needed=frozenset({"-w", "--write-changes"}), default=True),
    "dprint": _by_command(fmt=_Formatter(_WEB, default=True, skipped=1)),
    "sqlfluff": _by_command(fix=_Formatter(("*.sql",), skipped=1), format=_Formatter(("*.sql",), skipped=1)),
}
"""Programs that rewrite the files of their languages, in the folders that they are given."""
