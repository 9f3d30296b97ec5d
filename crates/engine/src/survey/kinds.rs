//! The names by which things in repositories are known.
//!
//! Owns the tables: lock files, manifests, pipelines and the like, each with the one sentence that
//! says why it deserves care. Refuses to count or to shorten; `survey` does.

use super::{Found, Seen};

pub(super) const LOCK_REASON: &str = "two changes to a lock file never merge cleanly";
pub(super) const MANY_LOCKS_REASON: &str = "two changes to a lock file never merge cleanly; \
there are many, so each is claimed by itself";
pub(super) const MIGRATIONS_REASON: &str = "migrations are a sequence: two written at once clash";
pub(super) const ROUTES_REASON: &str = "a route table is edited by every feature";
pub(super) const MANIFEST_REASON: &str = "manifests decide what everybody builds with";
pub(super) const CI_REASON: &str = "pipelines run for everybody";
pub(super) const SHARED_REASON: &str = "deploy files and shared scripts affect everybody at once";
pub(super) const RULES_REASON: &str = "rules and agent settings change how every agent behaves";
pub(super) const CHANGELOG_REASON: &str = "everybody adds to it, nobody rewrites it";

pub(super) const FOREIGN_FOLDERS: &[&str] = &[
    "node_modules",
    "vendor",
    "third_party",
    "third-party",
    "fixtures",
    "__fixtures__",
    "testdata",
    "test-data",
    "site-packages",
];

pub(super) const LOCK_FILES: &[&str] = &[
    ".terraform.lock.hcl",
    "Cargo.lock",
    "Gemfile.lock",
    "MODULE.bazel.lock",
    "Package.resolved",
    "Pipfile.lock",
    "Podfile.lock",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "conan.lock",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "go.work.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "paket.lock",
    "pdm.lock",
    "pixi.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "rebar.lock",
    "stack.yaml.lock",
    "uv.lock",
    "yarn.lock",
];

const MANIFESTS: &[&str] = &[
    ".tool-versions",
    "CMakeLists.txt",
    "Cargo.toml",
    "Directory.Build.props",
    "Directory.Packages.props",
    "Gemfile",
    "MODULE.bazel",
    "Package.swift",
    "Pipfile",
    "Podfile",
    "build.gradle",
    "build.gradle.kts",
    "build.sbt",
    "composer.json",
    "deno.json",
    "environment.yml",
    "flake.nix",
    "go.mod",
    "go.work",
    "gradle.properties",
    "libs.versions.toml",
    "meson.build",
    "mix.exs",
    "package.json",
    "pnpm-workspace.yaml",
    "pom.xml",
    "pubspec.yaml",
    "pyproject.toml",
    "rust-toolchain.toml",
    "settings.gradle",
    "settings.gradle.kts",
    "setup.cfg",
    "setup.py",
    "stack.yaml",
];

/// Endings of manifests whose names are the project's own.
const MANIFEST_EXTENSIONS: &[&str] = &["cabal", "csproj", "fsproj", "gemspec", "sln", "vbproj"];

/// At the root of a repository.
const CI_FOLDERS: &[&str] = &[
    ".buildkite",
    ".ci",
    ".circleci",
    ".concourse",
    ".forgejo/workflows",
    ".gitea/workflows",
    ".github/actions",
    ".github/workflows",
    ".gitlab/ci",
    ".teamcity",
    ".woodpecker",
];

const CI_FILES: &[&str] = &[
    ".appveyor.yml",
    ".cirrus.yml",
    ".drone.yml",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".woodpecker.yml",
    "Jenkinsfile",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "buildspec.yml",
    "cloudbuild.yaml",
];

const SHARED_FOLDERS: &[&str] = &[
    ".kamal",
    "ansible",
    "charts",
    "deploy",
    "deployment",
    "deployments",
    "helm",
    "infra",
    "infrastructure",
    "k8s",
    "kubernetes",
    "pulumi",
    "script",
    "scripts",
    "terraform",
];

const SHARED_FILES: &[&str] = &[
    "Caddyfile",
    "Dockerfile",
    "GNUmakefile",
    "Justfile",
    "Makefile",
    "Procfile",
    "Pulumi.yaml",
    "Taskfile.yaml",
    "Taskfile.yml",
    "Tiltfile",
    "Vagrantfile",
    "app.json",
    "cdk.json",
    "docker-bake.hcl",
    "fly.toml",
    "justfile",
    "makefile",
    "netlify.toml",
    "nginx.conf",
    "railway.json",
    "render.yaml",
    "samconfig.toml",
    "serverless.yml",
    "skaffold.yaml",
    "vercel.json",
    "wrangler.json",
    "wrangler.jsonc",
    "wrangler.toml",
];

const RULES_FOLDERS: &[&str] = &[
    ".aider",
    ".amp",
    ".claude",
    ".clinerules",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".github/instructions",
    ".goose",
    ".kiro",
    ".opencode",
    ".roo",
    ".windsurf",
];

const RULES_FILES: &[&str] = &[
    ".aider.conf.yml",
    ".cursorrules",
    ".goosehints",
    ".mcp.json",
    ".windsurfrules",
    "AGENTS.md",
    "CLAUDE.md",
    "CODEOWNERS",
    "GEMINI.md",
    "copilot-instructions.md",
    "opencode.json",
    "opencode.jsonc",
];

/// Files that hold the outcome of all migrations and stand beside them.
pub(super) const SCHEMAS: &[&str] = &["schema.prisma", "schema.rb", "schema.sql", "structure.sql"];

fn in_root_folder(path: &Seen<'_>, folders: &[&str]) -> Option<Found> {
    let folder = folders.iter().find(|folder| {
        path.path.strip_prefix(**folder).is_some_and(|rest| rest.starts_with('/'))
    })?;
    Some(Found::Itself(format!("{folder}/")))
}

fn named(path: &Seen<'_>, names: &[&str]) -> Option<Found> {
    names.contains(&path.name).then(|| Found::Named { glob: path.name.to_owned() })
}

pub(super) fn ci(path: &Seen<'_>) -> Option<Found> {
    in_root_folder(path, CI_FOLDERS).or_else(|| {
        let root = path.folders.is_empty() && CI_FILES.contains(&path.name);
        root.then(|| Found::Itself(path.path.to_owned()))
    })
}

pub(super) fn shared(path: &Seen<'_>) -> Option<Found> {
    if let Some(found) = in_root_folder(path, SHARED_FOLDERS).or_else(|| named(path, SHARED_FILES))
    {
        return Some(found);
    }
    let (stem, extension) = path.stem_and_extension();
    let yaml = matches!(extension, "yml" | "yaml");
    let compose = ["docker-compose", "compose"]
        .iter()
        .any(|base| stem == *base || stem.strip_prefix(base).is_some_and(|it| it.starts_with('.')));
    let container = path.folded_name.starts_with("dockerfile.")
        || path.folded_name.ends_with(".dockerfile")
        || path.folded_name == "containerfile";
    if (yaml && compose) || container {
        return Some(Found::Itself(path.path.to_owned()));
    }
    (extension == "tf").then(|| Found::Named { glob: "*.tf".to_owned() })
}

pub(super) fn manifest(path: &Seen<'_>) -> Option<Found> {
    if let Some(found) = named(path, MANIFESTS) {
        return Some(found);
    }
    let (stem, extension) = path.stem_and_extension();
    if MANIFEST_EXTENSIONS.contains(&extension) {
        return Some(Found::Named { glob: format!("*.{extension}") });
    }
    // `requirements.txt`, `requirements-dev.txt`, `requirements/base.txt`.
    let parent = path.folders.last().copied().unwrap_or_default();
    let requirements = extension == "txt"
        && (stem == "requirements"
            || stem.starts_with("requirements-")
            || stem.starts_with("requirements_")
            || parent == "requirements");
    requirements.then(|| Found::Itself(path.path.to_owned()))
}

pub(super) fn rules(path: &Seen<'_>) -> Option<Found> {
    let own = (path.path == baton_core::rules::FILE).then(|| Found::Itself(path.path.to_owned()));
    own.or_else(|| in_root_folder(path, RULES_FOLDERS)).or_else(|| named(path, RULES_FILES))
}

pub(super) fn changelog(path: &Seen<'_>) -> Option<Found> {
    let (stem, extension) = match path.folded_name.rsplit_once('.') {
        Some((stem, extension)) => (stem, extension),
        None => (path.folded_name.as_str(), ""),
    };
    let text = matches!(extension, "" | "md" | "markdown" | "rst" | "txt" | "adoc" | "org");
    let plain = matches!(stem, "changelog" | "changes" | "releases" | "release-notes" | "journal");
    // These words mean other things too, so they count only where people look for them.
    let outer = matches!(stem, "history" | "news" | "worklog" | "devlog" | "logbook");
    let found = text && (plain || (outer && path.folders.is_empty()));
    // A folder called `journal` full of code is no journal, and neither is a source file.
    found.then(|| Found::Named { glob: path.name.to_owned() })
}

/// Languages that migrations are written in; a folder of prose is something else.
const MIGRATION_EXTENSIONS: &[&str] = &[
    "cjs", "cs", "down", "edgeql", "exs", "fs", "go", "groovy", "java", "js", "json", "kt", "mjs",
    "php", "pl", "py", "rb", "rs", "scala", "sql", "surql", "toml", "ts", "up", "xml", "yaml",
    "yml",
];

pub(super) fn migrations_folder(path: &Seen<'_>) -> Option<String> {
    let (_, extension) = path.stem_and_extension();
    if !MIGRATION_EXTENSIONS.contains(&extension) || path.is_under(&["docs", "doc"]) {
        return None;
    }
    let folders = &path.folders;
    let is = |index: usize, name: &str| {
        folders.get(index).is_some_and(|folder| folder.eq_ignore_ascii_case(name))
    };
    let index = (0..folders.len()).find(|index| {
        let after = |name: &str| *index > 0 && is(index - 1, name);
        is(*index, "migrations")
            || is(*index, "migration") && (after("db") || after("database") || after("resources"))
            || is(*index, "migrate") && (after("db") || after("database"))
            || is(*index, "versions") && after("alembic")
            || is(*index, "changelog") && (after("db") || after("liquibase"))
            // Drizzle keeps its sequence in `drizzle/meta/_journal.json`.
            || is(*index, "drizzle") && (is(index + 1, "meta") || extension == "sql")
    })?;
    Some(path.folder_up_to(index))
}

/// `0001_users.sql`, `20240131-add.up.sql`, and Flyway's `V1.2__users.sql`.
pub(super) fn is_numbered_sql(path: &Seen<'_>) -> bool {
    let (stem, extension) = path.stem_and_extension();
    if extension != "sql" {
        return false;
    }
    let digits = stem.strip_prefix(['v', 'u', 'r']).filter(|_| stem.contains("__"));
    let rest = digits.unwrap_or(stem);
    let number = rest.chars().take_while(char::is_ascii_digit).count();
    number > 0 && rest[number..].starts_with(['_', '-', '.'])
}

const CODE: &[&str] = &[
    "cs", "ex", "exs", "go", "java", "js", "jsx", "kt", "mjs", "php", "py", "rb", "rs", "scala",
    "swift", "ts", "tsx", "vue",
];

pub(super) fn is_route_table(path: &Seen<'_>) -> bool {
    if path.is_under(&["test", "tests", "__tests__", "spec", "examples"]) {
        return false;
    }
    let (stem, extension) = path.stem_and_extension();
    let parent = path.folders.last().copied().unwrap_or_default();
    // Laravel's tables are named by their door.
    let laravel = parent == "routes" && extension == "php" && matches!(stem, "web" | "api");
    let by_folder = matches!(parent, "router" | "routes") && matches!(stem, "index" | "mod");
    let by_name =
        matches!(stem, "routes" | "router" | "routing") || stem == "urls" && extension == "py";
    CODE.contains(&extension) && (laravel || by_folder || by_name) || path.path == "conf/routes"
}
