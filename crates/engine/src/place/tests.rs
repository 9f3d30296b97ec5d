//! Real git repositories of every layout, and every spelling of a path in them.
//! Nothing here starts git but the tests that build the repositories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::identity::{self, Kind, Located, resolve};
use super::*;

struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        Self { _folder: folder, path }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn write(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x\n").unwrap();
        path
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "protocol.file.allow=always", "-c", "user.name=T"])
            .args(["-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"])
            .args(arguments)
            .current_dir(self.at(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    }

    fn repository(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.at(name)).unwrap();
        self.git(name, &["init", "-q"]);
        self.write(&format!("{name}/src/a.rs"));
        self.git(name, &["add", "."]);
        self.git(name, &["commit", "-qm", "one"]);
        self.at(name)
    }

    fn workspace(&self, name: &str) -> Place {
        let root = self.repository(name);
        initialise(&root)
    }
}

fn initialise(folder: &Path) -> Place {
    let (place, made) = Site::find(folder).unwrap().initialise().unwrap();
    assert!(made);
    place
}

fn one(place: &Place, cwd: &Path, given: impl AsRef<OsStr>) -> Located {
    let mut found = resolve(place, cwd, given.as_ref()).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn refused(place: &Place, cwd: &Path, given: impl AsRef<OsStr>) -> identity::Error {
    resolve(place, cwd, given.as_ref()).unwrap_err()
}

#[test]
fn a_main_checkout_is_found_from_below_and_from_a_file() {
    let scratch = Scratch::new();
    let made = scratch.workspace("repo");
    assert_eq!(made.store, scratch.at("repo/.git/baton"));
    assert_eq!(made.tree_kind, TreeKind::Main);
    for start in ["repo", "repo/src", "repo/src/a.rs", "repo/not/there", "repo/.git/hooks"] {
        assert_eq!(Place::find(&scratch.at(start)).unwrap(), made, "{start}");
    }
    assert_eq!(Some(made.tree_id().unwrap()), made.workspace.tree);
}

#[test]
fn nothing_initialised_is_said_with_where_it_was_looked_for() {
    let scratch = Scratch::new();
    let root = scratch.repository("repo");
    let Err(Error::NotInitialised { looked_from, ignored }) = Place::find(&root.join("src")) else {
        panic!()
    };
    assert_eq!((looked_from, ignored), (root.join("src"), None));
}

#[test]
fn a_second_init_finds_the_first() {
    let scratch = Scratch::new();
    let first = scratch.workspace("repo");
    let site = Site::find(&first.root).unwrap();
    assert!(site.nested_in().is_none());
    assert_eq!(site.initialise().unwrap(), (first, false));
}

#[test]
fn a_linked_worktree_shares_the_store_and_has_its_own_id() {
    let scratch = Scratch::new();
    let main = scratch.workspace("repo");
    scratch.git("repo", &["worktree", "add", "-q", "../side"]);
    let side = Place::find(&scratch.at("side/src")).unwrap();
    assert_eq!(side.root, scratch.at("side"));
    assert_eq!(side.store, main.store);
    assert_eq!(side.tree_kind, TreeKind::Linked { name: "side".into() });
    let id = side.tree_id().unwrap();
    assert_eq!(side.tree_id().unwrap(), id);
    assert_ne!(id, main.tree_id().unwrap());
    assert!(scratch.at("repo/.git/worktrees/side/baton-tree").exists());
}

#[test]
fn a_worktree_inside_the_main_checkout_is_its_own_tree() {
    let scratch = Scratch::new();
    let main = scratch.workspace("repo");
    scratch.git("repo", &["worktree", "add", "-q", ".worktrees/x"]);
    let inner = Place::find(&scratch.at("repo/.worktrees/x/src")).unwrap();
    assert_eq!(inner.root, scratch.at("repo/.worktrees/x"));
    let found = one(&main, &main.root, ".worktrees/x/src/a.rs");
    assert_eq!((found.tree_root, &*found.path), (inner.root.clone(), "src/a.rs"));
    let found = one(&inner, &inner.root, "../../src/a.rs");
    assert_eq!((found.tree_root, &*found.path), (main.root, "src/a.rs"));
}

#[test]
fn worktrees_of_a_bare_clone_share_its_store() {
    let scratch = Scratch::new();
    scratch.repository("seed");
    scratch.git("", &["clone", "-q", "--bare", "seed", "hub/.bare"]);
    fs::write(scratch.at("hub/.git"), "gitdir: ./.bare\n").unwrap();
    scratch.git("hub", &["worktree", "add", "-q", "one"]);
    scratch.git("hub", &["worktree", "add", "-q", "two", "-b", "two"]);
    for bare in ["hub", "hub/.bare", "hub/.bare/refs"] {
        let found = Site::find(&scratch.at(bare));
        assert!(matches!(found, Err(Error::BareRepository { .. })), "{bare}: {found:?}");
    }
    let one = initialise(&scratch.at("hub/one"));
    assert_eq!(one.workspace.tree, None);
    let two = Place::find(&scratch.at("hub/two")).unwrap();
    assert_eq!(two.store, scratch.at("hub/.bare/baton"));
    assert_ne!(one.tree_id().unwrap(), two.tree_id().unwrap());
    let bare = Place::find(&scratch.at("hub"));
    assert!(matches!(bare, Err(Error::BareRepository { .. })), "{bare:?}");
    let inside = refused(&one, &one.root, "../.bare/config");
    assert!(matches!(inside, identity::Error::GitDir { .. }), "{inside:?}");
}

#[test]
fn a_submodule_belongs_to_the_workspace_around_it() {
    let scratch = Scratch::new();
    scratch.repository("library");
    let place = scratch.workspace("repo");
    scratch.git("repo", &["submodule", "add", "-q", "../library", "lib"]);
    assert_eq!(Place::find(&scratch.at("repo/lib/src")).unwrap(), place);
    assert_eq!(one(&place, &scratch.at("repo/lib"), "src/a.rs").path, "lib/src/a.rs");
    let site = Site::find(&scratch.at("repo/lib")).unwrap();
    assert!(site.submodule);
    assert_eq!(site.nested_in(), Some(&place));
    assert!(!Site::find(&scratch.at("repo")).unwrap().submodule);
}

#[test]
fn of_nested_repositories_the_outermost_initialised_counts() {
    let scratch = Scratch::new();
    scratch.repository("outer");
    let inner = scratch.workspace("outer/vendor/inner");
    assert_eq!(Place::find(&inner.root.join("src")).unwrap(), inner);
    let outer = initialise(&scratch.at("outer"));
    assert_eq!(Place::find(&inner.root.join("src")).unwrap(), outer);
    let config = refused(&outer, &outer.root, "vendor/inner/.git/config");
    assert!(matches!(config, identity::Error::GitDir { .. }), "{config:?}");
}

#[test]
fn a_plain_folder_keeps_its_store_in_itself_and_may_hold_repositories() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.at("desk/notes")).unwrap();
    let place = initialise(&scratch.at("desk"));
    assert_eq!(place.store, scratch.at("desk/.baton/store"));
    assert_eq!(place.tree_kind, TreeKind::Plain);
    scratch.repository("desk/project");
    assert_eq!(Place::find(&scratch.at("desk/project/src")).unwrap(), place);
    assert_eq!(Some(place.tree_id().unwrap()), place.workspace.tree);
    let store = refused(&place, &place.root, ".baton/store/workspace.toml");
    assert!(matches!(store, identity::Error::GitDir { .. }), "{store:?}");
}

#[test]
fn a_store_that_could_have_come_with_a_clone_is_not_believed() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.at("desk")).unwrap();
    initialise(&scratch.at("desk"));
    scratch.repository("desk");
    let Err(Error::NotInitialised { ignored, .. }) = Place::find(&scratch.at("desk")) else {
        panic!()
    };
    assert_eq!(ignored.unwrap().reason, IgnoreReason::InsideRepository);
}

#[test]
fn a_broken_git_file_is_said_unless_a_workspace_is_around_it() {
    let scratch = Scratch::new();
    scratch.write("loose/x");
    fs::write(scratch.at("loose/.git"), "gitdir: ../gone\n").unwrap();
    let broken = Place::find(&scratch.at("loose"));
    assert!(matches!(broken, Err(Error::BrokenGitFile { .. })), "{broken:?}");
    let place = scratch.workspace("repo");
    fs::write(scratch.at("repo/src/.git"), "not a git file\n").unwrap();
    assert_eq!(Place::find(&scratch.at("repo/src")).unwrap(), place);
    assert_eq!(one(&place, &place.root, "src/a.rs").path, "src/a.rs");
}

#[test]
fn lesson_05_every_spelling_of_a_file_is_one_resource() {
    let scratch = Scratch::new();
    let place = scratch.workspace("real/repo");
    symlink(scratch.at("real"), scratch.at("private")).unwrap();
    symlink("src", scratch.at("real/repo/code")).unwrap();
    symlink("real/repo/src/a.rs", scratch.at("shortcut")).unwrap();
    let root = place.root.to_str().unwrap().to_owned();
    let seen = scratch.at("private/repo");
    let linked_root = seen.to_str().unwrap();
    let spellings = [
        "src/a.rs".to_owned(),
        "./src/a.rs".into(),
        "src//a.rs".into(),
        "src/./a.rs".into(),
        "src/../src/a.rs".into(),
        "not/there/../../src/a.rs".into(),
        "code/a.rs".into(),
        "../repo/src/a.rs".into(),
        "code/../src/a.rs".into(),
        format!("{root}/src/a.rs"),
        format!("{root}/../repo//src/a.rs"),
        format!("{linked_root}/src/a.rs"),
        format!("{linked_root}/code/a.rs"),
        format!("{linked_root}/../repo/src/a.rs"),
        scratch.at("shortcut").to_str().unwrap().to_owned(),
        "/proc/self/root".to_owned() + &root + "/src/a.rs",
    ];
    let expected =
        Located { tree_root: place.root.clone(), path: "src/a.rs".into(), kind: Kind::File };
    for cwd in [&place.root, &seen] {
        for spelling in &spellings {
            if spelling.starts_with("/proc") && !cfg!(target_os = "linux") {
                continue;
            }
            assert_eq!(one(&place, cwd, spelling), expected, "{spelling} in {}", cwd.display());
        }
        assert_eq!(one(&place, &cwd.join("code"), "a.rs"), expected);
        assert_eq!(one(&place, &cwd.join("code"), "../src/a.rs"), expected);
        for here in [".", "./", "./.", "../src", "../src/", ".././code/."] {
            assert_eq!(one(&place, &cwd.join("code"), here).path, "src", "{here}");
        }
    }
    assert_eq!(Place::find(&seen).unwrap(), place);
}

#[test]
fn the_kind_is_told_and_a_missing_tail_is_kept() {
    let scratch = Scratch::new();
    let place = scratch.workspace("repo");
    symlink("src", scratch.at("repo/code")).unwrap();
    let cases = [
        ("src", "src", Kind::Folder),
        ("src/", "src", Kind::Folder),
        (".", "", Kind::Folder),
        ("src/..", "", Kind::Folder),
        ("new/", "new", Kind::Folder),
        ("new/deep/b.rs", "new/deep/b.rs", Kind::Missing),
        ("code/new/b.rs", "src/new/b.rs", Kind::Missing),
        ("code/.", "src", Kind::Folder),
        ("src/a.rs/x", "src/a.rs/x", Kind::Missing),
        ("app/[id]/*.tsx", "app/[id]/*.tsx", Kind::Missing),
        ("@types/a#b", "@types/a#b", Kind::Missing),
        ("a\\", "a\\", Kind::Missing),
    ];
    for (given, path, kind) in cases {
        let found = one(&place, &place.root, given);
        assert_eq!((&*found.path, found.kind), (path, kind), "{given}");
    }
}

#[test]
fn a_link_is_itself_and_its_target() {
    let scratch = Scratch::new();
    let place = scratch.workspace("repo");
    scratch.write("elsewhere");
    symlink("src/a.rs", scratch.at("repo/link")).unwrap();
    symlink("link", scratch.at("repo/second")).unwrap();
    symlink("src/new.rs", scratch.at("repo/dangling")).unwrap();
    symlink("../elsewhere", scratch.at("repo/out")).unwrap();
    symlink(".git/config", scratch.at("repo/sly")).unwrap();
    symlink("src", scratch.at("repo/code")).unwrap();
    let link = Kind::Link { leads_outside: false };
    let cases: [(&str, &[(&str, Kind)]); 6] = [
        ("link", &[("link", link), ("src/a.rs", Kind::File)]),
        ("second", &[("second", link), ("src/a.rs", Kind::File)]),
        ("dangling", &[("dangling", link), ("src/new.rs", Kind::Missing)]),
        ("code", &[("code", link), ("src", Kind::Folder)]),
        ("code/", &[("code", link), ("src", Kind::Folder)]),
        ("out", &[("out", Kind::Link { leads_outside: true })]),
    ];
    for (given, expected) in cases {
        let found = resolve(&place, &place.root, OsStr::new(given)).unwrap();
        let found: Vec<_> = found.iter().map(|one| (&*one.path, one.kind)).collect();
        assert_eq!(found, expected, "{given}");
    }
    let sly = refused(&place, &place.root, "sly");
    assert!(matches!(sly, identity::Error::GitDir { .. }), "{sly:?}");
}

#[test]
fn s10_nothing_resolves_outside_the_workspace() {
    let scratch = Scratch::new();
    let place = scratch.workspace("repo");
    scratch.workspace("other");
    fs::create_dir_all(scratch.at("away/deep")).unwrap();
    symlink(scratch.at("away"), scratch.at("repo/door")).unwrap();
    symlink("/", scratch.at("repo/top")).unwrap();
    let outside = [
        "..",
        "../away/x",
        "../other/src/a.rs",
        "../repo2/x",
        "/",
        "/no/such/folder",
        "door/x",
        "door/deep/new/x",
        "door/../x",
        "top/etc/passwd",
        "src/../../x",
        "../../../../../../../x",
    ];
    for given in outside {
        let error = refused(&place, &place.root, given);
        assert!(matches!(error, identity::Error::Outside { .. }), "{given}: {error:?}");
    }
    let twin = format!("{}x/src/a.rs", place.root.display());
    let error = refused(&place, &place.root, twin);
    assert!(matches!(error, identity::Error::Outside { .. }), "{error:?}");
}

#[test]
fn a_path_in_another_tree_of_the_workspace_is_told_with_that_tree() {
    let scratch = Scratch::new();
    let main = scratch.workspace("repo");
    scratch.git("repo", &["worktree", "add", "-q", "../side"]);
    for given in ["../side/src/a.rs", "../side/new/b.rs", "../side"] {
        let found = one(&main, &main.root, given);
        assert_eq!(found.tree_root, scratch.at("side"), "{given}");
    }
    assert_eq!(one(&main, &main.root, "../side/new/b.rs").path, "new/b.rs");
    let side = Place::find(&scratch.at("side")).unwrap();
    for given in ["../repo/.git/config", ".git", "../repo/.git/worktrees/side/HEAD"] {
        let error = refused(&side, &side.root, given);
        assert!(matches!(error, identity::Error::GitDir { .. }), "{given}: {error:?}");
    }
}

#[test]
fn git_and_the_store_are_never_resources() {
    let scratch = Scratch::new();
    let place = scratch.workspace("repo");
    let sly = ".g\u{200d}it/config";
    for given in [".git", ".git/", ".git/config", ".GIT/config", "src/../.git/HEAD", sly] {
        let error = refused(&place, &place.root, given);
        assert!(matches!(error, identity::Error::GitDir { .. }), "{given}: {error:?}");
    }
    assert_eq!(one(&place, &place.root, ".gitignore").path, ".gitignore");
}

#[test]
fn what_cannot_be_a_path_is_refused() {
    let scratch = Scratch::new();
    let place = scratch.workspace("repo");
    symlink("round", scratch.at("repo/round")).unwrap();
    symlink("two", scratch.at("repo/one")).unwrap();
    symlink("one", scratch.at("repo/two")).unwrap();
    let no = |given: &[u8]| refused(&place, &place.root, OsStr::from_bytes(given));
    assert!(matches!(no(b""), identity::Error::Empty));
    assert!(matches!(no(b"a\0b"), identity::Error::Nul { .. }));
    assert!(matches!(no(b"src/\xff.rs"), identity::Error::NotUtf8 { .. }));
    assert!(matches!(no(b"round"), identity::Error::Loop { .. }));
    assert!(matches!(no(b"one/x"), identity::Error::Loop { .. }));
    assert!(matches!(no("x".repeat(256).as_bytes()), identity::Error::TooLong { .. }));
    assert!(matches!(no("not/".repeat(1100).as_bytes()), identity::Error::TooLong { .. }));
    assert!(matches!(no("src/../".repeat(600).as_bytes()), identity::Error::TooLong { .. }));
}
