//! What is proposed for repositories of many kinds.
//!
//! Each test is a list of paths and the zones it gives, one line a zone.

use std::path::Path;

use super::*;
use crate::config;

/// One line for each zone, without the one for `baton.toml` alone.
fn zones(paths: &[&str]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    let zones = propose(&paths);
    let lines = zones.iter().filter(|zone| zone.paths != ["baton.toml"]);
    let lines = lines.map(|zone| format!("{:?} {}", zone.policy, zone.paths.join(" ")));
    lines.collect::<Vec<_>>().join("\n").to_lowercase()
}

#[test]
fn an_ordinary_repository_gets_no_noise() {
    assert_eq!(zones(&["README.md", "src/main.c", "src/history/a.c", "docs/migrations/v2.md"]), "");
    assert_eq!(zones(&[]), "");
    let all = propose(&[]);
    assert_eq!(all.len(), 1, "the policy itself is guarded: {all:?}");
}

#[test]
fn a_rust_workspace() {
    let found = zones(&[
        "Cargo.toml",
        "Cargo.lock",
        "CHANGELOG.md",
        "src/main.rs",
        "crates/a/Cargo.toml",
        "crates/b/Cargo.toml",
        "crates/c/Cargo.toml",
        "crates/d/Cargo.toml",
        "AGENTS.md",
        ".github/workflows/ci.yml",
        ".github/workflows/release.yml",
        "scripts/dist.sh",
        "migrations/0001_users.sql",
        "Makefile",
        ".claude/settings.json",
    ]);
    insta::assert_snapshot!(found, @r#"
    require makefile scripts/
    require .github/workflows/
    require **/cargo.toml
    require .claude/ agents.md baton.toml
    append changelog.md
    serial migrations/
    serial cargo.lock
    "#);
}

#[test]
fn rails_and_its_schema() {
    insta::assert_snapshot!(zones(&[
        "Gemfile", "Gemfile.lock", "config/routes.rb", "db/migrate/20240101_users.rb",
        "db/schema.rb", "db/seeds.rb", "app/models/user.rb", "Procfile", "Dockerfile",
    ]), @r#"
    require dockerfile procfile
    require gemfile
    serial config/routes.rb
    serial db/migrate/ db/schema.rb
    serial gemfile.lock
    "#);
}

#[test]
fn django_with_many_apps() {
    let mut paths = vec![
        "manage.py".to_owned(),
        "requirements.txt".to_owned(),
        "shop/urls.py".to_owned(),
        "shop/settings.py".to_owned(),
    ];
    for app in 0..9 {
        paths.push(format!("apps/app{app}/migrations/0001_initial.py"));
        paths.push(format!("apps/app{app}/urls.py"));
    }
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    insta::assert_snapshot!(zones(&paths), @r#"
    require requirements.txt
    serial shop/urls.py
    serial **/migrations/**
    "#);
}

#[test]
fn a_web_monorepo() {
    let mut paths = vec![
        "package.json".to_owned(),
        "pnpm-lock.yaml".to_owned(),
        "pnpm-workspace.yaml".to_owned(),
        "prisma/schema.prisma".to_owned(),
        "prisma/migrations/1_init/migration.sql".to_owned(),
        "apps/web/src/router/index.ts".to_owned(),
        "wrangler.toml".to_owned(),
        "docker-compose.dev.yml".to_owned(),
        "apps/web/app/[id]/page.tsx".to_owned(),
        "node_modules/x/package.json".to_owned(),
        "test/fixtures/yarn.lock".to_owned(),
    ];
    paths.extend((0..5).map(|number| format!("packages/p{number}/package.json")));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    insta::assert_snapshot!(zones(&paths), @r#"
    require docker-compose.dev.yml wrangler.toml
    require **/package.json pnpm-workspace.yaml
    serial apps/web/src/router/index.ts
    serial prisma/migrations/ prisma/schema.prisma
    serial pnpm-lock.yaml
    "#);
}

#[test]
fn many_lock_files_do_not_share_one_holder() {
    let paths: Vec<String> = (0..8).map(|number| format!("svc{number}/go.sum")).collect();
    let zones = propose(&paths);
    let lock = zones.iter().find(|zone| zone.paths == ["**/go.sum"]).unwrap();
    assert_eq!(lock.policy, Rule::Require);
    let few = propose(&paths[..3]);
    let serial: Vec<_> = few.iter().filter(|zone| zone.policy == Rule::Serial).collect();
    assert_eq!(serial.len(), 3, "{few:?}");
}

#[test]
fn migrations_of_many_frameworks() {
    for (path, folder) in [
        ("alembic/versions/1_a.py", "alembic/versions/"),
        ("src/main/resources/db/migration/V1__a.sql", "src/main/resources/db/migration/"),
        ("priv/repo/migrations/1_a.exs", "priv/repo/migrations/"),
        ("Api/Migrations/1_A.cs", "Api/Migrations/"),
        ("database/migrations/2020_a.php", "database/migrations/"),
        ("supabase/migrations/1.sql", "supabase/migrations/"),
        ("drizzle/0000_a.sql", "drizzle/"),
        ("db/changelog/db.changelog-master.yaml", "db/changelog/"),
    ] {
        let found = propose(&[path.to_owned()]);
        let zone = found.iter().find(|zone| zone.policy == Rule::Serial);
        assert_eq!(zone.map(|zone| zone.paths.as_slice()), Some([folder.to_owned()].as_slice()));
    }
    let numbered = ["sql/001_a.sql".to_owned(), "sql/002_b.sql".to_owned()];
    assert!(propose(&numbered).iter().any(|zone| zone.paths == ["sql/"]));
    assert!(!propose(&numbered[..1]).iter().any(|zone| zone.paths == ["sql/"]));
}

#[test]
fn what_is_written_means_what_was_proposed() {
    let paths: Vec<String> = [
        "Cargo.lock",
        "a\"b/Cargo.lock",
        "we[i]rd/Cargo.lock",
        "@types/package.json",
        "CHANGES",
        "back\\slash/migrations/1.sql",
        "tab\there/routes.py",
        "path:odd/yarn.lock",
        "k8s/a.yaml",
    ]
    .map(str::to_owned)
    .into();
    let zones = propose(&paths);
    let text = baton_toml(&zones, &[]);
    let policy = config::compile(Path::new("baton.toml"), &text, Default::default()).unwrap();
    let checks = checks(&["Cargo.toml".to_owned()], &[]);
    let with = baton_toml(&zones, &checks);
    let with = config::compile(Path::new("baton.toml"), &with, Default::default()).unwrap();
    assert_eq!(with.evidence.named[0].run, checks[0].run);
    assert_eq!(with.zones, policy.zones);
    let compiled: Vec<Vec<String>> = policy
        .zones
        .iter()
        .map(|zone| zone.paths.iter().map(ToString::to_string).collect())
        .collect();
    let proposed: Vec<Vec<String>> = zones.iter().map(|zone| zone.paths.clone()).collect();
    assert_eq!(compiled, proposed);
    // Each proposed zone covers something that is really there, or the policy itself.
    for zone in policy.zones {
        let real = paths.iter().map(String::as_str).chain(["baton.toml"]);
        let mut real = real.filter_map(|path| Resource::literal(path).ok());
        assert!(real.any(|path| zone.paths.iter().any(|zone| zone.overlaps(&path))), "{zone:?}");
    }
}

#[test]
fn the_file_is_for_people() {
    let zones = propose(&["Cargo.lock".to_owned(), "CHANGELOG.md".to_owned()]);
    insta::assert_snapshot!(baton_toml(&zones, &[]), @r#"
    # How agents and people share this repository.
    #
    # A zone is some paths with a policy. The last zone that matches a path wins; a path in no zone
    # is "auto". The policies:
    #
    #   off      nothing is judged
    #   auto     the first edit claims the file; others are held off until it is let go
    #   require  claim first (baton claim PATH), then edit
    #   serial   one holder for the whole zone, from the first edit until the change has landed
    #   append   many may add at the end; changing existing lines is refused
    #   human    a person approves
    #
    # Paths: "src/a.rs" is a file, "src/" everything below, "**/*.sql" a pattern.
    # A change of this file counts once a person has approved it: baton policy approve

    # Rules and agent settings change how every agent behaves.
    [[zone]]
    paths = ["baton.toml"]
    policy = "require"

    # Everybody adds to it, nobody rewrites it.
    [[zone]]
    paths = ["CHANGELOG.md"]
    policy = "append"

    # Two changes to a lock file never merge cleanly.
    [[zone]]
    paths = ["Cargo.lock"]
    policy = "serial"

    # Things that are not files can be claimed too: baton claim @deploy/prod
    # One that several may hold at once has a capacity, taken in amounts: baton claim @gpu=1
    #
    # [resource."@gpu"]
    # capacity = 2
    "#);
}
