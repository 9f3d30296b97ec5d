//! Formatters that are told a file.
//!
//! A formatter without the flag that makes it write only shows, and writes nothing.

use super::check;

const FORMATTERS: &[(&str, &str)] = &[
    ("rustfmt --edition 2021 a.rs", "change a.rs if there, !"),
    ("rustfmt --check a.rs", "!"),
    ("prettier --write a.ts b.ts", "change a.ts if there, change b.ts if there, !"),
    ("npx --yes prettier@3 --config x --write a.ts", "change a.ts if there, !"),
    ("prettier a.ts", "!"),
    ("prettier --write 'src/**/*.ts'", "!"),
    ("black -l 100 a.py", "change a.py if there, !"),
    ("python3 -m black a.py", "change a.py if there, !"),
    ("black --diff a.py", "!"),
    ("ruff format a.py", "change a.py if there, !"),
    ("uv run ruff check --fix a.py", "change a.py if there, !"),
    ("ruff check a.py", "!"),
    ("isort --profile black a.py", "change a.py if there, !"),
    ("isort -c a.py", "!"),
    ("gofmt -w a.go", "change a.go if there, !"),
    ("gofmt -l a.go", "!"),
    ("eslint --fix a.js", "change a.js if there, !"),
    ("eslint a.js", "!"),
    ("biome format --write a.js", "change a.js if there, !"),
    ("biome format a.js", "!"),
    ("shfmt -i 2 -w a.sh", "change a.sh if there, !"),
    ("clang-format -i -style=file a.c", "change a.c if there, !"),
    ("clang-format -style=file a.c", "!"),
    ("perltidy -b a.pl", "change a.pl if there, !"),
    ("ruby -i -pe 'x' a.rb", "change a.rb, !"),
    ("ruby a.rb", "!"),
    ("sort a | sponge a", "create a, !"),
    ("sponge -a a", "append a, !"),
    ("black *.py", "change <*.py> if there, !"),
];

#[test]
fn formatters_write_what_they_are_told() {
    check(FORMATTERS);
}
