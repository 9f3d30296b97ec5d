//! Real git, in good repositories and in hostile ones.
//! A hostile one plants programs that leave a canary; none may ever be found.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

struct Scratch {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repo");
        fs::create_dir(&root).unwrap();
        let scratch = Self { _folder: folder, root };
        scratch.git(&["init", "-q", "-b", "main"]);
        scratch.git(&["config", "user.name", "T"]);
        scratch.git(&["config", "user.email", "t@example.invalid"]);
        scratch
    }

    fn committed() -> Self {
        let scratch = Self::new();
        scratch.write("a.txt", "one\n");
        scratch.write("dir/b.txt", "two\n");
        scratch.commit("first");
        scratch
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", message]);
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.root, arguments)
    }

    fn wrapper(&self) -> Git {
        Git::in_tree(&self.root).unwrap()
    }

    fn dirty(&self, paths: &[&str]) -> Vec<String> {
        let status = self.wrapper().status(&owned(paths)).unwrap();
        status.changed.into_iter().map(|changed| changed.path).collect()
    }
}

fn git_in(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Saves what is dirty at these paths, if anything is.
fn rescue(git: &Git, paths: &[&str], reference: &str, why: &str) -> Result<Option<Oid>, Error> {
    let status = git.status(&owned(paths))?;
    let changed: Vec<&Changed> = status.changed.iter().collect();
    if changed.is_empty() {
        return Ok(None);
    }
    let (reference, message) = (reference.to_owned(), why.to_owned());
    Ok(git.rescue(&status, &[Rescue { changed, reference, message }])?.pop())
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn the_installed_git_is_new_enough() {
    let scratch = Scratch::new();
    assert!(scratch.wrapper().version().unwrap() >= VERSION_MIN);
    let apple = Version::parse("git version 2.39.5 (Apple Git-154)\n");
    assert_eq!(apple, Some(Version { major: 2, minor: 39, patch: 5 }));
    let windows = Version::parse("git version 2.38.0.windows.1");
    assert_eq!(windows, Some(Version { major: 2, minor: 38, patch: 0 }));
    assert!(Version::parse("git version 2.9.5").unwrap() < VERSION_MIN);
    assert_eq!(Version::parse("hg 6"), None);
}

#[test]
fn dirty_is_changed_staged_untracked_or_gone() {
    let scratch = Scratch::committed();
    assert_eq!(scratch.dirty(&[""]), Vec::<String>::new());
    scratch.write("a.txt", "changed\n");
    scratch.write("new/deep/c d.txt", "x");
    scratch.write("staged", "x");
    scratch.git(&["add", "staged"]);
    fs::remove_file(scratch.root.join("dir/b.txt")).unwrap();
    let all = ["a.txt", "dir/b.txt", "new/deep/c d.txt", "staged"];
    assert_eq!(scratch.dirty(&[""]), all);
    assert_eq!(scratch.dirty(&["new"]), ["new/deep/c d.txt"]);
    assert_eq!(scratch.dirty(&["a.txt", "not/there"]), ["a.txt"]);
    assert_eq!(scratch.dirty(&[]), Vec::<String>::new());
}

#[test]
fn paths_are_literal() {
    let scratch = Scratch::committed();
    scratch.write("app/[id]/page", "x");
    scratch.write("app/i/page", "x");
    scratch.write(":(top)x", "x");
    scratch.write("--output=x", "x");
    assert_eq!(scratch.dirty(&["app/[id]"]), ["app/[id]/page"]);
    assert_eq!(scratch.dirty(&["*"]), Vec::<String>::new());
    assert_eq!(scratch.dirty(&[":(top)x", "--output=x"]), ["--output=x", ":(top)x"]);
}

#[test]
fn a_path_in_a_nested_repository_is_asked_there() {
    let library = Scratch::committed();
    let scratch = Scratch::committed();
    let address = library.root.to_str().unwrap();
    scratch.git(&["submodule", "add", "-q", address, "sub"]);
    scratch.commit("submodule");
    scratch.write("sub/a.txt", "changed\n");
    assert_eq!(scratch.dirty(&["sub/a.txt"]), ["sub/a.txt"]);
    assert_eq!(scratch.dirty(&["sub/dir/b.txt"]), Vec::<String>::new());
    assert_eq!(scratch.dirty(&["sub"]), ["sub/a.txt"]);
    git_in(&scratch.root, &["init", "-q", "inner"]);
    scratch.write("inner/new", "x");
    assert_eq!(scratch.dirty(&[""]), ["inner/new"]);
    let wrapper = scratch.wrapper();
    let saved = rescue(&wrapper, &["sub/a.txt"], "refs/baton/rescue/1", "m").unwrap();
    let name = format!("{}:sub/a.txt", saved.unwrap());
    assert_eq!(scratch.git(&["show", &name]), "changed\n");
}

#[test]
fn s17_a_rescue_saves_every_byte_and_touches_nothing() {
    let scratch = Scratch::committed();
    scratch.write(".gitattributes", "* text eol=crlf\n");
    scratch.commit("attributes");
    scratch.write("a.txt", "worktree\r\nmixed\n");
    scratch.write("dir/staged", "staged");
    scratch.git(&["add", "dir/staged"]);
    scratch.write("quote\"and\nnewline\\", "odd");
    scratch.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(scratch.root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", scratch.root.join("link")).unwrap();
    fs::remove_file(scratch.root.join("dir/b.txt")).unwrap();
    let index = fs::read(scratch.root.join(".git/index")).unwrap();
    let (status, head) = (scratch.git(&["status", "-z"]), scratch.git(&["rev-parse", "HEAD"]));

    let wrapper = scratch.wrapper();
    let saved = rescue(&wrapper, &[""], "refs/baton/rescue/1", "why\n").unwrap().unwrap();

    let show = |path: &str| scratch.git(&["show", &format!("{saved}:{path}")]);
    assert_eq!(show("a.txt"), "worktree\r\nmixed\n");
    assert_eq!(show("dir/staged"), "staged");
    assert_eq!(show("quote\"and\nnewline\\"), "odd");
    assert_eq!(show("link"), "/etc/passwd");
    let listed = scratch.git(&["ls-tree", "-r", saved.as_str()]);
    assert!(listed.contains("100755") && listed.contains("120000"), "{listed}");
    assert!(!listed.contains("dir/b.txt"), "{listed}");
    assert_eq!(scratch.git(&["rev-parse", "refs/baton/rescue/1^"]), head);
    assert_eq!(fs::read(scratch.root.join(".git/index")).unwrap(), index);
    assert_eq!(scratch.git(&["status", "-z"]), status);
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), head);

    // A second one under the same name keeps the first.
    scratch.write("a.txt", "later");
    let again = rescue(&wrapper, &[""], "refs/baton/rescue/1", "other").unwrap().unwrap();
    assert_eq!(scratch.git(&["show", "refs/baton/rescue/1:a.txt"]), "later");
    assert_eq!(scratch.git(&["rev-parse", &format!("{again}^@")]), format!("{saved}\n"));
    let clean = rescue(&wrapper, &["dir/never"], "refs/baton/rescue/2", "m").unwrap();
    assert_eq!(clean, None);
}

#[test]
fn s17_what_was_only_staged_is_saved_and_comes_back() {
    let scratch = Scratch::committed();
    scratch.write("a.txt", "staged\n");
    scratch.write("new", "staged and gone\n");
    scratch.git(&["add", "-A"]);
    scratch.write("a.txt", "in the tree\n");
    fs::remove_file(scratch.root.join("new")).unwrap();
    scratch.git(&["rm", "-q", "--cached", "dir/b.txt"]);
    let saved = rescue(&scratch.wrapper(), &[""], "refs/baton/rescue/1", "m").unwrap().unwrap();
    let show = |name: &str| scratch.git(&["show", &format!("{saved}{name}")]);
    assert_eq!(show(":a.txt"), "in the tree\n");
    assert_eq!(show(":dir/b.txt"), "two\n", "no longer tracked, but there");
    assert_eq!(show("^2:a.txt"), "staged\n");
    assert_eq!(show("^2:new"), "staged and gone\n");
    let staged = scratch.git(&["ls-tree", "-r", "--name-only", &format!("{saved}^2")]);
    assert_eq!(staged, "a.txt\nnew\n");
    // It has the form of a stash, so everyone's git can bring it back.
    scratch.git(&["reset", "-q", "--hard"]);
    scratch.git(&["stash", "apply", "-q", "--index", "refs/baton/rescue/1"]);
    assert_eq!(scratch.git(&["show", ":a.txt"]), "staged\n");
    assert_eq!(fs::read_to_string(scratch.root.join("a.txt")).unwrap(), "in the tree\n");
}

#[test]
fn a_folder_and_a_file_may_take_each_others_place() {
    let scratch = Scratch::committed();
    fs::remove_file(scratch.root.join("a.txt")).unwrap();
    scratch.write("a.txt/inside", "x");
    fs::remove_dir_all(scratch.root.join("dir")).unwrap();
    scratch.write("dir", "y");
    let saved = rescue(&scratch.wrapper(), &[""], "refs/baton/rescue/1", "m").unwrap().unwrap();
    let listed = scratch.git(&["ls-tree", "-r", "--name-only", saved.as_str()]);
    assert_eq!(listed, "a.txt/inside\ndir\n");
}

#[test]
fn a_rescue_upon_a_rescue_still_shows_all_that_was_changed() {
    let scratch = Scratch::committed();
    let git = scratch.wrapper();
    let head = git.head().unwrap();
    let reference = "refs/baton/rescue/twice";
    scratch.write("a.txt", "first\n");
    rescue(&git, &["a.txt"], reference, "one").unwrap().unwrap();
    scratch.write("dir/b.txt", "second\n");
    let last = rescue(&git, &["dir/b.txt"], reference, "two").unwrap().unwrap();
    assert_eq!(git.below_rescue(&last).unwrap(), head);
    let patch = git.patch_between(head.as_ref(), &last).unwrap();
    let patch = String::from_utf8(patch).unwrap();
    assert!(patch.contains("+first") && patch.contains("+second"), "{patch}");
}

#[test]
fn many_rescues_are_one_call() {
    let scratch = Scratch::committed();
    scratch.write("a.txt", "x");
    scratch.write("dir/b.txt", "y");
    let git = scratch.wrapper();
    let status = git.status(&owned(&[""])).unwrap();
    let rescues: Vec<Rescue<'_>> = (0..status.changed.len())
        .map(|index| Rescue {
            changed: vec![&status.changed[index]],
            reference: format!("refs/baton/rescue/{index}"),
            message: "m".to_owned(),
        })
        .collect();
    let saved = git.rescue(&status, &rescues).unwrap();
    assert_eq!(scratch.git(&["show", &format!("{}:a.txt", saved[0])]), "x");
    assert_eq!(scratch.git(&["show", &format!("{}:a.txt", saved[1])]), "one\n");
    assert_eq!(scratch.git(&["show", "refs/baton/rescue/1:dir/b.txt"]), "y");
}

#[test]
fn a_rescue_works_before_the_first_commit() {
    let scratch = Scratch::new();
    scratch.write("a", "x");
    scratch.write("gone", "x");
    scratch.git(&["add", "gone"]);
    fs::remove_file(scratch.root.join("gone")).unwrap();
    let saved = rescue(&scratch.wrapper(), &[""], "refs/baton/rescue/1", "m").unwrap();
    assert_eq!(scratch.git(&["ls-tree", "--name-only", saved.unwrap().as_str()]), "a\n");
}

#[test]
fn files_become_a_commit_once() {
    let scratch = Scratch::committed();
    let git = Git::in_repository(&scratch.root.join(".git")).unwrap();
    let author = Author { name: "amber-otter".into(), email: "a@example.invalid".into() };
    let commit = |files: &[(&str, &str)]| {
        let files: Vec<_> =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().into())).collect();
        git.commit_files("refs/baton/state", &files, "state\n", &author)
    };
    let first = commit(&[("tasks/1.md", "one"), ("README", "r")]).unwrap();
    assert_eq!(commit(&[("README", "r"), ("tasks/1.md", "one")]).unwrap(), first);
    let second = commit(&[("tasks/2.md", "two")]).unwrap();
    let shown = scratch.git(&["ls-tree", "-r", "--name-only", "refs/baton/state"]);
    assert_eq!(shown, "tasks/2.md\n");
    let log = scratch.git(&["log", "--format=%H %an", "refs/baton/state"]);
    assert_eq!(log, format!("{second} amber-otter\n{first} amber-otter\n"));
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    let empty = commit(&[]).unwrap();
    assert_eq!(scratch.git(&["ls-tree", empty.as_str()]), "");
}

#[test]
fn history_is_told() {
    let scratch = Scratch::committed();
    scratch.write("--output=x", "x");
    scratch.commit("second\n\nbody");
    scratch.git(&["remote", "add", "origin", "https://u:p@host/x.git"]);
    let git = scratch.wrapper();
    let log = git.log_of_path("--output=x", 5).unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!((&*log[0].author, &*log[0].subject), ("T", "second"));
    assert!(git.commit_exists(&log[0].oid).unwrap());
    assert!(!git.commit_exists(&Oid::parse(&"1".repeat(40)).unwrap()).unwrap());
    assert_eq!(git.log_of_path("", 0).unwrap(), []);
    assert_eq!(git.remote_url().unwrap().as_deref(), Some("https://host/x.git"));
    let root = scratch.git(&["rev-list", "--max-parents=0", "HEAD"]);
    assert_eq!(git.root_commit().unwrap(), Oid::parse(root.trim()));

    let empty = Scratch::new();
    assert_eq!(empty.wrapper().root_commit().unwrap(), None);
    assert_eq!(empty.wrapper().remote_url().unwrap(), None);
    assert_eq!(empty.wrapper().log_of_path("a", 5).unwrap(), []);
}

#[test]
fn a_shallow_clone_does_not_know_its_root() {
    let scratch = Scratch::committed();
    scratch.write("a.txt", "two\n");
    scratch.commit("second");
    let address = format!("file://{}", scratch.root.display());
    scratch.git(&["clone", "-q", "--depth=1", &address, "../shallow"]);
    let shallow = Git::in_tree(&scratch.root.with_file_name("shallow")).unwrap();
    assert_eq!(shallow.root_commit().unwrap(), None);
}

#[test]
fn a_failure_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let failed = Git::in_tree(folder.path()).unwrap().status(&owned(&["a"]));
    // Reading the configuration works anywhere; it is the status that finds no repository.
    let Err(Error::Failed { command, status, message }) = failed else { panic!("{failed:?}") };
    assert!(command.starts_with("status "), "{command}");
    assert_eq!(status, Some(128));
    assert!(message.contains("not a git repository"), "{message}");
}

#[test]
fn a_call_that_hangs_is_ended_with_its_children() {
    let scratch = Scratch::committed();
    let pipe = scratch.root.join(".git/hang");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    scratch.git(&["config", "include.path", "hang"]);
    let started = Instant::now();
    let git = scratch.wrapper().with_timeout(Duration::from_millis(300));
    let hung = git.head();
    assert!(matches!(hung, Err(Error::TimedOut { .. })), "{hung:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

/// A repository that tries to run a program wherever git would let it.
fn hostile() -> (Scratch, PathBuf) {
    let scratch = Scratch::committed();
    let canary = scratch.root.with_file_name("canary");
    let script = scratch.root.with_file_name("evil.sh");
    fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", canary.display()))
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let evil = script.to_str().unwrap();
    scratch.write(".gitattributes", "*.txt filter=evil diff=evil\nx* filter=a=b\n");
    scratch.commit("attributes");
    let hooks = scratch.root.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-index-change", "reference-transaction", "pre-commit", "post-commit"] {
        symlink(&script, hooks.join(hook)).unwrap();
    }
    let settings = [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "filter.a=b.clean",
        "gpg.program",
        "credential.helper",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
    ];
    for setting in settings {
        scratch.git(&["config", setting, evil]);
    }
    scratch.git(&["config", "filter.evil.required", "true"]);
    scratch.git(&["config", "log.showSignature", "true"]);
    scratch.git(&["config", "commit.gpgSign", "true"]);
    scratch.git(&["config", "core.hooksPath", hooks.to_str().unwrap()]);
    fs::remove_file(&canary).ok();
    (scratch, canary)
}

#[test]
fn lesson_31_a_hostile_repository_runs_nothing() {
    let (scratch, canary) = hostile();
    scratch.write("a.txt", "same length or not\n");
    scratch.write("dir/b.txt", "owt\n");
    scratch.write("xfile", "x");
    scratch.write("--output=x", "x");
    let quiet = |deed: &str| {
        let fired = fs::read_to_string(&canary).unwrap_or_default();
        assert!(fired.is_empty(), "{deed}: {fired}");
        let output = scratch.root.join("x");
        assert!(!output.exists(), "{deed} took a path for an option");
    };
    let git = scratch.wrapper();
    git.version().unwrap();
    quiet("version");
    let dirty = git.status(&owned(&["", "--output=x"])).unwrap();
    assert_eq!(dirty.paths(), ["--output=x", "a.txt", "dir/b.txt", "xfile"]);
    quiet("status");
    rescue(&git, &[""], "refs/baton/rescue/1", "m").unwrap().unwrap();
    quiet("rescue");
    let files = [("--output=x".to_owned(), b"x".to_vec())];
    git.commit_files("refs/baton/state", &files, "--output=x", &Author::baton()).unwrap();
    quiet("commit_files");
    git.log_of_path("a.txt", 5).unwrap();
    git.log_of_path("--output=x", 5).unwrap();
    quiet("log");
    git.root_commit().unwrap().unwrap();
    git.remote_url().unwrap();
    let head = git.head().unwrap().unwrap();
    assert!(git.commit_exists(&head).unwrap());
    quiet("history");
    let refused = rescue(&git, &[""], "--output=x", "m");
    assert!(matches!(refused, Err(Error::BadReference { .. })));
    quiet("reference");
    // The trap itself is armed: plain git walks into it.
    Command::new("git").arg("status").current_dir(&scratch.root).output().unwrap();
    assert!(canary.exists(), "the canary cannot fire, so this test proves nothing");
}

#[test]
fn lesson_31_a_branch_named_like_an_option_is_a_branch() {
    let scratch = Scratch::committed();
    let head = scratch.git(&["rev-parse", "HEAD"]);
    scratch.git(&["update-ref", "refs/heads/--output=x", head.trim()]);
    scratch.git(&["symbolic-ref", "HEAD", "refs/heads/--output=x"]);
    let git = scratch.wrapper();
    assert_eq!(git.head().unwrap(), Oid::parse(head.trim()));
    assert_eq!(git.log_of_path("a.txt", 5).unwrap().len(), 1);
    assert_eq!(git.resolve("--output=x").unwrap(), Oid::parse(head.trim()));
    assert!(!scratch.root.join("x").exists());
}

/// However a repository spells a filter of its own, and wherever it keeps it, it is found.
#[test]
fn lesson_31_a_repositorys_filters_are_found_in_every_file_of_it() {
    let names = |scratch: &Scratch| scratch.wrapper().own_filters().unwrap();
    let scratch = Scratch::committed();
    assert_eq!(names(&scratch), [""; 0]);
    let config = scratch.root.join(".git/config");
    let plain = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{plain}[FilTer \"loud\"]\n\tClean = cat\n")).unwrap();
    assert_eq!(names(&scratch), ["loud"]);
    fs::write(scratch.root.join(".git/more"), "[filter \"far\"]\n\tsmudge = cat\n").unwrap();
    fs::write(&config, format!("{plain}[INCLUDE]\n\tpath = more\n")).unwrap();
    assert_eq!(names(&scratch), ["far"]);
    fs::write(&config, &plain).unwrap();
    scratch.git(&["config", "extensions.worktreeConfig", "true"]);
    scratch.git(&["config", "--worktree", "filter.near.process", "cat"]);
    assert_eq!(names(&scratch), ["near"]);
}
