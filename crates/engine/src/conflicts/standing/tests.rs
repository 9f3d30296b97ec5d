//! Every kind of change is seen, and what did not change is not read again: real git, real files.
//! The judge is always git itself, asked about the whole tree.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

struct Scratch {
    folder: tempfile::TempDir,
    root: PathBuf,
    memory: Memory,
}

/// Long enough for everything to be old.
fn wait() {
    std::thread::sleep(Duration::from_millis(45));
}

fn git_in(root: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=T", "-c", "user.email=t@example.invalid"]);
    command.args(["-c", "commit.gpgSign=false"]).args(words).current_dir(root);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Scratch {
    /// A tree with a bit of everything.
    fn new(version: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&root).unwrap();
        let scratch = Self { folder, root, memory: Memory::empty() };
        scratch.git(&["init", "-q", "-b", "main"]);
        scratch.git(&["config", "index.version", version]);
        scratch.write(".gitignore", "*.log\ntarget/\nown/*\n");
        scratch.write("a", "aaaa\n");
        scratch.write("in/b", "bbbb\n");
        scratch.write("in/deep/c", "cccc\n");
        scratch.write("target/kept", "kept\n");
        symlink("a", scratch.root.join("link")).unwrap();
        scratch.git(&["add", "-A"]);
        scratch.git(&["add", "-f", "target/kept"]);
        scratch.git(&["commit", "-qm", "first"]);
        scratch.write("new", "untracked\n");
        scratch.write("untracked/one", "1\n");
        scratch.write("known.log", "ignored\n");
        scratch.write("target/built/x", "ignored\n");
        scratch.write("own/.gitignore", "*\n");
        scratch.write("self/.gitignore", "*\n");
        scratch.write("self/hidden", "ignored\n");
        fs::create_dir(scratch.root.join("empty")).unwrap();
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn git(&self, words: &[&str]) -> String {
        git_in(&self.root, words)
    }

    fn tree(&self) -> Tree {
        let git = Git::in_tree(&self.root).unwrap();
        Tree {
            id: None,
            record: None,
            path: self.root.clone(),
            admin: Some(self.root.join(".git")),
            linked: Some(git.trees().unwrap().remove(0)),
            main: true,
        }
    }

    /// Does the tree as it is now prove something to a look that began so long after the last
    /// change of this file or folder?
    fn proves(&self, name: &str, after: Duration) -> bool {
        let (git, memory) = (Git::in_tree(&self.root).unwrap(), Memory::empty());
        let (tree, settings) = (self.tree(), Settings::of(&git));
        let common = self.root.join(".git");
        let heads = Heads::of(&git, &[&tree]);
        let looker =
            Looker { common: &common, settings: settings.as_ref(), memory: &memory, heads };
        let mark = looker.ground(&tree).unwrap().mark(&[]).unwrap();
        let data = fs::metadata(self.path(name)).unwrap();
        let since =
            Duration::new(data.ctime().try_into().unwrap(), data.ctime_nsec().try_into().unwrap());
        mark.is_older_than(SystemTime::UNIX_EPOCH + since + after)
    }

    /// The snapshot, and whether the tree was not read for it.
    fn look_with(&self, memory: &mut Memory) -> (Oid, bool) {
        let git = Git::in_tree(&self.root).unwrap();
        let common = self.root.join(".git");
        let (tree, settings) = (self.tree(), Settings::of(&git));
        let heads = Heads::of(&git, &[&tree]);
        let looker = Looker { common: &common, settings: settings.as_ref(), memory, heads };
        let look = looker.look(&tree);
        let proven = matches!(look, Look::AsBefore(_));
        let trees = [tree];
        let snapshot = settle(&git, &trees, vec![Some(look)], memory).unwrap().remove(0).unwrap();
        (snapshot.commit.unwrap(), proven)
    }

    fn look(&mut self) -> (Oid, bool) {
        let mut memory = std::mem::replace(&mut self.memory, Memory::empty());
        let looked = self.look_with(&mut memory);
        self.memory = memory;
        let fresh = self.look_with(&mut Memory::empty());
        assert!(!fresh.1);
        let judge = self.asked_of_git();
        if looked.0 != judge && looked.0 == fresh.0 && self.is_deceived(&judge, &looked.0) {
            return looked;
        }
        assert_eq!((&looked.0, &fresh.0), (&judge, &judge), "proven: {}", looked.1);
        looked
    }

    /// Git compares times by whole seconds: a file of the same size that was set back within one is
    /// the same to it. Then what is there decides.
    fn is_deceived(&self, judge: &Oid, ours: &Oid) -> bool {
        let (judge, ours) = (judge.to_string(), ours.to_string());
        let all = self.git(&["diff", "--name-only", &judge, &ours]);
        let other = self.git(&["diff", "--name-only", "--diff-filter=M", &judge, &ours]);
        let is_ours = |name: &str| {
            let there = fs::read_to_string(self.path(name)).unwrap_or_default();
            there == self.git(&["show", &format!("{ours}:{name}")])
        };
        all == other && other.lines().all(is_ours)
    }

    /// What git says of the whole tree, whatever we make of its index.
    fn asked_of_git(&self) -> Oid {
        let git = Git::in_tree(&self.root).unwrap();
        let work = git.work(&carried(&self.tree()), false).unwrap();
        git.commits_of(&[&work]).unwrap().remove(0).unwrap()
    }

    /// Is the tree read by itself, without git's look at all of it? And what git was asked about.
    fn read_without_git(&self) -> Option<Differing> {
        let (tree, git) = (self.tree(), Git::in_tree(&self.root).unwrap());
        let head = tree.linked.as_ref()?.head.clone()?;
        let index = Index::read(&self.root.join(".git/index"), &head)?;
        if index.tree != git.trees_of(&[&head]).unwrap().remove(0) {
            return None;
        }
        Differing::between(&Listing::of(&self.root, Rule::Within(&folders(&index)))?, &index)
    }

    /// Remembers the tree as it is, surely.
    fn settle(&mut self) -> Oid {
        wait();
        self.look();
        let (commit, proven) = self.look();
        assert!(proven, "nothing changed: {:?}", self.memory);
        commit
    }
}

/// What is done to a tree, by the name of it.
type Deed = (&'static str, fn(&Scratch));

/// Each gives another snapshot.
const CHANGES: &[Deed] = &[
    ("an edit of the same size", |s| s.write("a", "AAAA\n")),
    ("an edit whose time is set back", |s| {
        let before = fs::metadata(s.path("in/b")).unwrap().modified().unwrap();
        s.write("in/b", "BBBB\n");
        let file = fs::File::options().write(true).open(s.path("in/b")).unwrap();
        file.set_modified(before).unwrap();
    }),
    ("a new file", |s| s.write("other", "x\n")),
    ("a new file in a folder without any", |s| s.write("empty/x", "x\n")),
    ("a new file in an untracked folder", |s| s.write("untracked/two", "2\n")),
    ("an edit in an untracked folder", |s| s.write("untracked/one", "2\n")),
    ("an edit of a tracked file in an ignored folder", |s| s.write("target/kept", "KEPT\n")),
    ("a file that is gone", |s| fs::remove_file(s.path("in/deep/c")).unwrap()),
    ("an untracked file that is gone", |s| fs::remove_file(s.path("new")).unwrap()),
    ("a file that may be run", |s| {
        fs::set_permissions(s.path("a"), fs::Permissions::from_mode(0o755)).unwrap();
    }),
    ("another name", |s| fs::rename(s.path("a"), s.path("z")).unwrap()),
    ("another name for a folder", |s| fs::rename(s.path("in"), s.path("out")).unwrap()),
    ("one file in the place of another", |s| {
        s.write("target/built/b", "BBBB\n");
        fs::rename(s.path("target/built/b"), s.path("in/b")).unwrap();
    }),
    ("a link to elsewhere", |s| {
        fs::remove_file(s.path("link")).unwrap();
        symlink("b", s.path("link")).unwrap();
    }),
    ("a folder in the place of a file", |s| {
        fs::remove_file(s.path("a")).unwrap();
        s.write("a/x", "x\n");
    }),
    ("an empty folder in the place of a file", |s| {
        fs::remove_file(s.path("a")).unwrap();
        fs::create_dir(s.path("a")).unwrap();
    }),
    ("a link in the place of a folder", |s| {
        fs::rename(s.path("in"), s.path("target/built/in")).unwrap();
        symlink("target/built/in", s.path("in")).unwrap();
    }),
    ("a folder in the place of an ignored file", |s| {
        s.write(".git/info/exclude", "!known.log/\n");
        fs::remove_file(s.path("known.log")).unwrap();
        s.write("known.log/x", "x\n");
        s.write(".gitignore", "*.log\n!known.log/\ntarget/\nown/*\n");
    }),
    ("a file that is gone from under another that begins the same", |s| {
        s.write("in.b/x", "x\n");
        s.write("in-b", "x\n");
        fs::remove_file(s.path("in/b")).unwrap();
    }),
    ("a file that was emptied", |s| s.write("a", "")),
    ("a commit", |s| {
        s.git(&["commit", "-qam", "empty", "--allow-empty"]);
    }),
    ("a commit of what was there", |s| {
        s.git(&["add", "new"]);
        s.git(&["commit", "-qm", "new"]);
    }),
    ("another branch", |s| {
        s.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
        s.git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
        s.write("a", "other\n");
    }),
    ("another tip without a look at the files", |s| {
        let tree = s.git(&["rev-parse", "HEAD^{tree}"]);
        let made = s.git(&["commit-tree", "-p", "HEAD", "-m", "x", tree.trim()]);
        s.git(&["update-ref", "refs/heads/main", made.trim()]);
    }),
    ("rules that ignore less", |s| s.write(".gitignore", "target/\nown/*\n")),
    ("rules that ignore more", |s| s.write(".gitignore", "*.log\ntarget/\nown/*\nnew\n")),
    ("ignored rules that ignore less", |s| s.write("self/.gitignore", "*\n!hidden\n")),
    ("rules of the repository alone", |s| s.write(".git/info/exclude", "new\n")),
    ("a setting that names other rules", |s| {
        let rules = s.folder.path().join("rules");
        fs::write(&rules, "new\n").unwrap();
        s.git(&["config", "core.excludesFile", rules.to_str().unwrap()]);
    }),
];

#[test]
fn every_change_is_seen() {
    for version in ["2", "4"] {
        for (what, change) in CHANGES {
            let mut scratch = Scratch::new(version);
            let before = scratch.settle();
            change(&scratch);
            let (after, proven) = scratch.look();
            assert!(!proven && after != before, "{what}");
            // And at once again, for what is young proves nothing.
            assert_eq!(scratch.look().0, after, "{what}");
        }
    }
}

#[test]
fn what_does_not_matter_is_not_read_again() {
    let harmless: &[Deed] = &[
        ("an ignored file that is known", |s| s.write("known.log", "more\n")),
        ("an ignored file that is gone", |s| fs::remove_file(s.path("known.log")).unwrap()),
        ("anything in an ignored folder", |s| s.write("target/built/deep/y", "y\n")),
        ("a file that is read", |s| {
            fs::read(s.path("a")).unwrap();
        }),
        ("a branch elsewhere", |s| {
            s.git(&["branch", "elsewhere"]);
        }),
    ];
    for (what, change) in harmless {
        let mut scratch = Scratch::new("2");
        let before = scratch.settle();
        change(&scratch);
        assert_eq!(scratch.look(), (before, true), "{what}");
    }
    // These are read again, and nothing is found.
    let idle: &[Deed] = &[
        ("a new ignored file", |s| s.write("fresh.log", "x\n")),
        ("a touched file", |s| s.write("a", "aaaa\n")),
        ("a staged file", |s| {
            s.git(&["add", "new"]);
        }),
        ("a file that git is told not to look at", |s| {
            s.git(&["update-index", "--assume-unchanged", "a"]);
        }),
    ];
    for (what, change) in idle {
        let mut scratch = Scratch::new("2");
        let before = scratch.settle();
        change(&scratch);
        assert_eq!(scratch.look(), (before, false), "{what}");
        scratch.settle();
    }
}

#[test]
fn indexes_of_every_kind_are_good_enough() {
    for words in [
        &["update-index", "--split-index"][..],
        &["update-index", "--skip-worktree", "in/b"],
        &["update-index", "--index-version", "3"],
        &["config", "index.skipHash", "true"],
        &["config", "core.fileMode", "false"],
    ] {
        let mut scratch = Scratch::new("2");
        scratch.git(words);
        let before = scratch.settle();
        scratch.write("a", "AAAA\n");
        let (after, proven) = scratch.look();
        assert!(!proven && after != before, "{words:?}");
    }
}

#[test]
fn git_is_asked_only_about_what_its_index_does_not_tell() {
    for version in ["2", "4"] {
        let scratch = Scratch::new(version);
        wait();
        let names = |scratch: &Scratch| scratch.read_without_git().unwrap().names;
        let files = |scratch: &Scratch| scratch.read_without_git().unwrap().files;
        // Written in the same moment as the index: git refreshes it when it is told to.
        scratch.git(&["update-index", "-q", "--really-refresh"]);
        wait();
        scratch.git(&["update-index", "--force-write-index"]);
        assert_eq!(files(&scratch), [""; 0]);
        let unknown = ["empty", "known.log", "new", "own", "self", "target/built", "untracked"];
        assert_eq!(names(&scratch), unknown);
        scratch.write("in/b", "BBBB\n");
        fs::remove_file(scratch.path("link")).unwrap();
        assert_eq!(files(&scratch), ["in/b", "link"]);
        scratch.git(&["add", "in/b"]);
        assert_eq!(scratch.read_without_git(), None, "what is staged is asked of git");
    }
    let odd: &[&[&str]] = &[
        &["update-index", "--skip-worktree", "in/b"],
        &["update-index", "--assume-unchanged", "in/b"],
        &["add", "-N", "new"],
        &["update-index", "--split-index"],
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            "160000,4b825dc642cb6eb9a060e54bf8d69288fbee4904,m",
        ],
        &["sparse-checkout", "set", "in"],
        &["rm", "-q", "--cached", "a"],
    ];
    for words in odd {
        let scratch = Scratch::new("2");
        scratch.git(words);
        assert_eq!(scratch.read_without_git(), None, "{words:?}");
    }
}

#[test]
fn what_is_converted_is_asked_of_git() {
    let conversions: &[Deed] = &[
        ("attributes of the tree", |s| s.write(".gitattributes", "* text eol=crlf\n")),
        ("attributes of the repository", |s| s.write(".git/info/attributes", "* text eol=crlf\n")),
        ("attributes of one folder", |s| s.write("in/.gitattributes", "* text eol=crlf\n")),
        ("attributes of a user", |s| {
            let file = s.folder.path().join("attributes");
            fs::write(&file, "* text eol=crlf\n").unwrap();
            s.git(&["config", "core.attributesFile", file.to_str().unwrap()]);
        }),
        ("ends of lines", |s| {
            s.git(&["config", "core.autocrlf", "true"]);
        }),
        ("a filter of the repository's own", |s| {
            let ran = s.folder.path().join("ran");
            let program = format!("touch {}; cat", ran.display());
            s.git(&["config", "filter.own.clean", &program]);
            s.write(".gitattributes", "* filter=own\n");
        }),
    ];
    for (what, convert) in conversions {
        let mut scratch = Scratch::new("2");
        convert(&scratch);
        // Now it has other bytes than in git, and is the same to git.
        fs::remove_file(scratch.path("in/b")).unwrap();
        scratch.git(&["checkout", "-q", "in/b"]);
        let text = fs::read_to_string(scratch.path("in/b")).unwrap();
        assert_eq!(text.ends_with("\r\n"), !what.contains("filter"), "{what}");
        fs::remove_file(scratch.folder.path().join("ran")).ok();
        let before = scratch.settle();
        scratch.write("in/b", &text);
        assert_eq!(scratch.look(), (before, false), "{what}");
        assert!(!scratch.folder.path().join("ran").exists(), "{what}");
    }
}

#[test]
fn young_and_nested_trees_prove_nothing() {
    let mut scratch = Scratch::new("2");
    wait();
    scratch.write("a", "now\n");
    let tick = Duration::from_millis(20);
    assert!(!scratch.proves("a", Duration::ZERO), "it may change in the same tick");
    assert!(!scratch.proves("a", tick) && scratch.proves("a", tick * 2));
    wait();
    // A name that went at this very moment, and left nothing that is young but its folder.
    fs::remove_file(scratch.path("in/deep/c")).unwrap();
    assert!(!scratch.proves("in/deep", tick) && scratch.proves("in/deep", tick * 2));
    scratch.settle();
    // Taken out of the index only, an ignored file is still part of the snapshot.
    scratch.git(&["rm", "-q", "--cached", "target/kept"]);
    wait();
    let (before, _) = scratch.look();
    scratch.write("target/kept", "KEPT\n");
    assert_ne!(scratch.look().0, before);
    scratch.git(&["add", "-f", "target/kept"]);
    scratch.settle();
    // A repository within has its own HEAD and index.
    let inner = scratch.path("inner");
    fs::create_dir(&inner).unwrap();
    git_in(&inner, &["init", "-q"]);
    fs::write(inner.join("x"), "x\n").unwrap();
    wait();
    scratch.look();
    assert!(!scratch.look().1);
}

#[test]
fn a_setting_of_one_branch_is_asked_of_the_tree() {
    let mut scratch = Scratch::new("2");
    let (rules, more) = (scratch.folder.path().join("rules"), scratch.folder.path().join("more"));
    fs::write(&rules, "new\n").unwrap();
    fs::write(&more, format!("[core]\nexcludesFile = {}\n", rules.display())).unwrap();
    scratch.git(&["config", "includeIf.onbranch:side.path", more.to_str().unwrap()]);
    let before = scratch.settle();
    scratch.git(&["symbolic-ref", "HEAD", "refs/heads/side"]);
    scratch.git(&["update-ref", "refs/heads/side", "main"]);
    let (side, proven) = scratch.look();
    assert!(!proven && side != before);
    scratch.settle();
    fs::write(&rules, "nothing\n").unwrap();
    assert_eq!(scratch.look(), (before, false));
}

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Write(usize, u8),
    Remove(usize),
    Rename(usize, usize),
    Mode(usize, bool),
    SetBack(usize, u8),
    Stage,
    Refresh,
    Commit,
    Reset,
    Ignore(u8),
    Wait,
    Look,
}

const FILES: &[&str] = &[
    "a",
    "in/b",
    "in/deep/c",
    "new",
    "untracked/one",
    "known.log",
    "in/fresh.log",
    "target/kept",
    "target/built/x",
    "empty/later",
    "self/hidden",
];

impl Step {
    fn any() -> impl Strategy<Value = Self> {
        let file = || 0..FILES.len();
        prop_oneof![
            4 => (file(), any::<u8>()).prop_map(|(file, text)| Self::Write(file, text)),
            2 => file().prop_map(Self::Remove),
            2 => (file(), file()).prop_map(|(one, two)| Self::Rename(one, two)),
            1 => (file(), any::<bool>()).prop_map(|(file, run)| Self::Mode(file, run)),
            2 => (file(), any::<u8>()).prop_map(|(file, text)| Self::SetBack(file, text)),
            1 => Just(Self::Stage),
            1 => Just(Self::Refresh),
            1 => Just(Self::Commit),
            1 => Just(Self::Reset),
            1 => (0..3u8).prop_map(Self::Ignore),
            3 => Just(Self::Wait),
            6 => Just(Self::Look),
        ]
    }

    fn act(&self, scratch: &mut Scratch) {
        let path = |file: &usize| scratch.path(FILES[*file]);
        match self {
            Self::Write(file, text) => scratch.write(FILES[*file], &format!("{text:04}\n")),
            Self::Remove(file) => drop(fs::remove_file(path(file))),
            Self::Rename(one, two) => {
                fs::create_dir_all(path(two).parent().unwrap()).unwrap();
                drop(fs::rename(path(one), path(two)));
            }
            Self::Mode(file, run) => {
                let mode = fs::Permissions::from_mode(if *run { 0o755 } else { 0o644 });
                drop(fs::set_permissions(path(file), mode));
            }
            Self::SetBack(file, text) => {
                let Ok(before) = fs::metadata(path(file)).and_then(|data| data.modified()) else {
                    return;
                };
                scratch.write(FILES[*file], &format!("{text:04}\n"));
                let opened = fs::File::options().write(true).open(path(file)).unwrap();
                opened.set_modified(before).unwrap();
            }
            Self::Stage => drop(scratch.git(&["add", "-A"])),
            Self::Refresh => drop(scratch.git(&["status", "--short"])),
            Self::Commit => drop(scratch.git(&["commit", "-qam", "x", "--allow-empty"])),
            Self::Reset => drop(scratch.git(&["reset", "-q", "--hard"])),
            Self::Ignore(which) => {
                let rules = ["*.log\ntarget/\n", "target/\nempty/\n", "*.log\nuntracked/\n"];
                scratch.write(".gitignore", rules[usize::from(*which)]);
            }
            Self::Wait => wait(),
            // It compares with what git says.
            Self::Look => drop(scratch.look()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        max_shrink_iters: 40,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_look_sees_what_git_sees(
        steps in proptest::collection::vec(Step::any(), 5..40),
    ) {
        let mut scratch = Scratch::new("4");
        for step in &steps {
            step.act(&mut scratch);
        }
        wait();
        scratch.look();
        scratch.look();
    }
}
