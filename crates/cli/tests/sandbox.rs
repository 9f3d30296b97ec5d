//! `baton sandbox`: what the kernel refuses, to children of children, and what the broker does.
//!
//! Real Landlock, real namespaces, real git. Where the kernel has no Landlock each test says that
//! it is skipped.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Said, Scratch};

/// A workspace with a working tree beside it, and a place that nobody but the user may write.
struct Room {
    scratch: Scratch,
    tree: PathBuf,
    outside: PathBuf,
}

impl Room {
    fn new() -> Option<Self> {
        let scratch = Scratch::workspace();
        let said = scratch.baton(&["sandbox", "verify", "--", "true"]);
        if said.err.contains("Landlock") {
            eprintln!("skipped: {}", said.err);
            return None;
        }
        assert_eq!(said.code, 0, "{said:?}");
        let mia = scratch.session("mia");
        let made = scratch.acts(&mia, &["worktree", "new", "one", "--json"]).ok().json();
        let tree = PathBuf::from(made["path"].as_str().unwrap());
        let outside = scratch.path("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "kept\n").unwrap();
        Some(Self { scratch, tree, outside })
    }

    /// The command in the tree, with `baton` on its path.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.scratch.command(words);
        let folder = Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", folder.display()));
        command.env("OUTSIDE", &self.outside).env("TREE", &self.tree);
        command.env("REPO", self.scratch.root()).current_dir(&self.tree);
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ann");
            command.env(format!("GIT_{role}_EMAIL"), "ann@example.invalid");
        }
        command
    }

    fn sandbox(&self, options: &[&str], script: &str) -> Said {
        let words = [&["sandbox"], options, &["--", "sh", "-c", script]].concat();
        self.command(&words).output().unwrap().into()
    }

    fn python(&self, role: &str, script: &str) -> Said {
        let words = ["sandbox", role, "--", "python3", "-c", script];
        self.command(&words).output().unwrap().into()
    }

    fn kept(&self) -> bool {
        let entries: Vec<_> = std::fs::read_dir(&self.outside).unwrap().flatten().collect();
        entries.len() == 1 && std::fs::read(self.outside.join("kept")).unwrap() == b"kept\n"
    }
}

/// Tries every way to change something, and prints those that were not refused.
const TRY_ALL: &str = r#"
import os, sys, subprocess, errno
out, tree = os.environ["OUTSIDE"], os.environ["TREE"]
kept = out + "/kept"
def write(): open(kept, "w").write("x")
def append(): open(kept, "a").write("x")
def truncate(): os.truncate(kept, 0)
def remove(): os.unlink(kept)
def rename(): os.rename(kept, out + "/moved")
def take(): os.rename(kept, tree + "/taken")
def put():
    open(tree + "/mine", "w").write("x")
    os.rename(tree + "/mine", out + "/mine")
def make(): open(out + "/new", "x")
def folder(): os.mkdir(out + "/folder")
def link(): os.symlink("/etc/passwd", out + "/link")
def hard(): os.link(kept, tree + "/hard")
def fifo(): os.mkfifo(out + "/fifo")
def through():
    os.symlink(out, tree + "/door")
    open(tree + "/door/new", "w").write("x")
acts = [write, append, truncate, remove, rename, take, put, make, folder, link, hard, fifo]
for act in acts + [through]:
    try:
        act()
        print("NOT REFUSED", act.__name__)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EXDEV):
            print("OTHERWISE", act.__name__, error)
assert open(kept).read() == "kept\n", "reading is free"
"#;

#[test]
fn the_kernel_refuses_every_way_to_write_outside_to_children_of_children() {
    let Some(room) = Room::new() else { return };
    // A child of a child, in a session of its own.
    let wrapped = "import subprocess, sys\nshell = 'exec setsid --wait python3 -c \"$0\"'\n\
                   subprocess.run(['sh', '-c', shell, sys.argv[1]], check=True)\n";
    let words = ["sandbox", "code", "--", "python3", "-c", wrapped, TRY_ALL];
    let said: Said = room.command(&words).output().unwrap().into();
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    assert!(room.kept());
    // The same acts without a sandbox do succeed: the test can fail.
    let mut bare = Command::new("python3");
    bare.args(["-c", TRY_ALL]).env("OUTSIDE", &room.outside).env("TREE", &room.tree);
    let bare = Said::from(bare.output().unwrap());
    assert!(bare.out.contains("NOT REFUSED write"), "{bare:?}");
}

#[test]
fn a_role_writes_what_it_may_and_nothing_else_of_the_tree() {
    let Some(room) = Room::new() else { return };
    let tree = room.sandbox(
        &["code"],
        "echo x > new.txt && echo y >> src/a.rs && mkdir deep && mv new.txt deep/ && \
         touch $TMPDIR/t && echo $TMPDIR",
    );
    assert_eq!(tree.code, 0, "{tree:?}");
    assert!(room.tree.join("deep/new.txt").exists(), "what it wrote is kept");
    let temporary = PathBuf::from(tree.out.trim());
    assert!(temporary.is_absolute() && !temporary.parent().unwrap().exists(), "{tree:?}");
    for role in ["verify", "review", "explore", "debug", "orchestrator"] {
        let said = room.sandbox(&[role], "echo x > src/a.rs || touch new || cat src/a.rs");
        assert_eq!(said.code, 0, "{role}: {said:?}");
        assert!(said.out.contains("fn a()") && said.err.contains("ermission denied"), "{said:?}");
        assert!(!room.tree.join("new").exists());
    }
    let said = room.sandbox(
        &["scratch"],
        "echo result > $BATON_SCRATCH/result && git status --short && echo x > src/a.rs",
    );
    assert_ne!(said.code, 0, "{said:?}");
    let mut own = std::fs::read_dir(room.tree.join(".baton/scratch")).unwrap().flatten();
    assert!(own.any(|folder| folder.path().join("result").exists()), "{said:?}");
    assert!(!said.out.contains("scratch"), "git does not see it: {said:?}");
    // The whole of /tmp is not open, and shared memory is not.
    let said = room.sandbox(&["code"], "touch /tmp/baton-test-x; touch /dev/shm/baton-test-x");
    assert!(said.err.matches("ermission denied").count() == 2, "{said:?}");
    let said = room.sandbox(&["code"], "echo gone > /dev/null; echo said > /dev/stderr");
    assert!(said.code == 0 && said.err.contains("said"), "{said:?}");
}

#[test]
fn git_is_closed_but_for_what_is_the_trees_own() {
    let Some(room) = Room::new() else { return };
    // Nobody else is there yet, but where everybody's branches are, others come.
    let said = room.sandbox(&["code"], "echo x >> \"$REPO/.git/refs/heads/baton/one\"");
    assert!(said.err.contains("ermission denied"), "{said:?}");
    let mia = room.scratch.session("sib");
    let made = room.scratch.acts(&mia, &["worktree", "new", "two", "--json"]).ok().json();
    let sibling = made["path"].as_str().unwrap().to_owned();
    let closed = [
        "config",
        "hooks/pre-commit",
        "info/exclude",
        "packed-refs",
        "HEAD",
        "index",
        "new",
        "refs/heads/main",
        "refs/heads/baton/two",
        "refs/heads/baton/one",
        "logs/refs/heads/main",
        "worktrees/two/HEAD",
        "worktrees/two/index",
        "baton/store.db",
        "baton/new",
    ];
    for name in closed {
        let script = format!("echo x >> \"$REPO/.git/{name}\"");
        let said = room.sandbox(&["code"], &script);
        assert!(said.err.contains("ermission denied"), "{name}: {said:?}");
    }
    let said = room.sandbox(&["code"], &format!("echo x > {sibling}/src/a.rs"));
    assert!(said.err.contains("ermission denied"), "{said:?}");
    let said = room.sandbox(&["code"], "echo x > \"$REPO/src/a.rs\"");
    assert!(said.err.contains("ermission denied"), "{said:?}");

    let before = room.scratch.git(&["rev-parse", "baton/one"]);
    let said = room
        .sandbox(&["code"], "echo 1 > f && git add f && git status --short && git commit -qm x");
    assert!(said.out.contains("A  f") && said.err.contains("cannot lock ref"), "{said:?}");
    assert!(said.err.contains("commits with baton commit"), "it was said before: {said:?}");
    assert_eq!(before, room.scratch.git(&["rev-parse", "baton/one"]));
    let said = room.sandbox(&["code"], "baton git-hook pre-commit");
    assert!(said.err.ends_with("next: baton commit PATH… -m MESSAGE\n"), "{said:?}");
    let said = room.sandbox(&["code"], "baton claim f && baton commit f -m 'Add f'");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(room.scratch.git(&["log", "-1", "--format=%s", "baton/one"]).trim(), "Add f");
}

#[test]
fn a_branch_in_a_folder_of_its_own_can_be_moved_by_plain_git() {
    let Some(room) = Room::new() else { return };
    let own = room.scratch.path("own");
    let own = own.to_str().unwrap();
    room.scratch.git(&["worktree", "add", "-q", "-b", "ann/login/work", own]);
    let script = "echo 1 > f && git add f && git commit -qm 'Plain' && \
                  echo x > \"$REPO/.git/refs/heads/main\"";
    let said = room.sandbox(&["code", "--dir", own], script);
    assert!(said.err.contains("ermission denied"), "{said:?}");
    assert!(!said.err.contains("baton commit"), "{said:?}");
    assert_eq!(room.scratch.git(&["log", "-1", "--format=%s", "ann/login/work"]).trim(), "Plain");
    // A neighbour in that folder closes it.
    room.scratch.git(&["branch", "ann/login/other", "main"]);
    let said = room.sandbox(&["code", "--dir", own], "echo 2 > f && git commit -qam 'Second'");
    assert!(said.err.contains("cannot lock ref"), "{said:?}");
}

#[test]
fn in_the_main_checkout_git_and_nested_trees_stay_closed() {
    let Some(room) = Room::new() else { return };
    let root = room.scratch.root();
    let nested = root.join("trees/nested");
    room.scratch.git(&["worktree", "add", "-q", "-b", "nested", nested.to_str().unwrap()]);
    let here = root.to_str().unwrap();
    let said =
        room.sandbox(&["code", "--dir", here], "echo more >> README.md && echo n > src/new.rs");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("nothing new directly in that folder"), "{said:?}");
    for target in [".git/config", ".git/hooks/x", ".git/baton/x", "trees/nested/src/a.rs", "top"] {
        let said = room.sandbox(&["code", "--dir", here], &format!("echo x > {target}"));
        assert!(said.err.contains("ermission denied"), "{target}: {said:?}");
    }
    std::os::unix::fs::symlink(&room.outside, root.join("away")).unwrap();
    let said = room.sandbox(&["code", "--dir", here], "echo x > away/new");
    assert!(said.err.contains("ermission denied") && room.kept(), "{said:?}");
}

#[test]
fn files_that_would_lead_git_astray_are_put_back() {
    let Some(room) = Room::new() else { return };
    let admin = room.scratch.root().join(".git/worktrees/one");
    let before = std::fs::read(room.tree.join(".git")).unwrap();
    let config = std::fs::read(admin.join("config.worktree")).unwrap();
    let script = "echo 'gitdir: /nowhere' > .git && printf '[core]\\n fsmonitor = touch x\\n' > \
                  \"$REPO/.git/worktrees/one/config.worktree\" && baton session whoami && \
                  echo /nowhere > \"$REPO/.git/objects/info/alternates\"";
    let said = room.sandbox(&["code"], script);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.err.matches("which is put back").count(), 3, "{said:?}");
    assert_eq!(std::fs::read(room.tree.join(".git")).unwrap(), before);
    assert_eq!(std::fs::read(admin.join("config.worktree")).unwrap(), config);
}

#[test]
fn baton_inside_is_served_by_the_broker_as_one_session() {
    let Some(room) = Room::new() else { return };
    let eve = room.scratch.session("eve");
    room.scratch.acts(&eve, &["task", "add", "Write it"]).ok();
    // Python closes every descriptor it does not know, as Node and pseudo-terminals do.
    let script = "import subprocess, sys\n\
        def baton(*words):\n\
        \x20   return subprocess.run(['baton', *words], capture_output=True, text=True)\n\
        for words in [('claim', 'src/a.rs'), ('task', 'take', 't1'), ('status',), ('prime',),\n\
                      ('note', 'lesson', 'short'), ('claims',), ('doctor', '--json'),\n\
                      ('session', 'list', '--json')]:\n\
        \x20   done = baton(*words)\n\
        \x20   if done.returncode > (words[0] == 'doctor'): print('FAILED', words, done)\n\
        print(baton('session', 'whoami', '--json').stdout)\n\
        print(baton('claims', '--json').stdout)\n";
    let env = room
        .command(&["sandbox", "code", "--", "python3", "-c", script])
        .env("BATON_SESSION", &eve)
        .output()
        .unwrap();
    let said = Said::from(env);
    assert!(!said.out.contains("FAILED"), "{said:?}");
    let id = eve.split('.').next().unwrap();
    assert!(said.out.lines().next().unwrap().contains(id), "{said:?}");
    assert!(said.out.contains("src/a.rs"), "{said:?}");
    let claims = room.scratch.acts(&eve, &["claims", "--mine", "--json"]).ok().json();
    assert!(claims.to_string().contains("src/a.rs"), "it lasts as the session does: {claims}");
    let bob = room.scratch.session("bob");
    room.command(&["check", "src/a.rs"]).env("BATON_SESSION", &bob).output().unwrap();
    // Standard input and output are the caller's own, and the secret does not go in.
    let said = room.sandbox(&["code"], "echo '{\"a\": 1}' | baton state set k --stdin; env");
    assert!(!said.out.contains(&eve), "{said:?}");
    assert!(said.out.contains("BATON_SESSION=s"), "{said:?}");
}

#[test]
fn what_is_not_for_those_inside_is_refused() {
    let Some(room) = Room::new() else { return };
    let token = room.scratch.path("home/person");
    room.scratch.baton(&["person", "token", token.to_str().unwrap()]).ok();
    let token = token.display().to_string();
    let eve = room.scratch.session("eve");
    for line in [
        "trust --yes",
        "revoke src/a.rs --why x",
        "gate approve g1 --why x",
        "policy approve",
        "init --yes",
        "export out",
        "store backup out",
        "once k -- touch out",
        "worktree new three",
        "worktree remove two",
        "session start",
        "session end",
        "person token out",
        "sandbox code -- sh",
        "start claude",
        "demo",
        "journal --exec touch out",
        "rescue restore x",
        "handoff accept t1 --start claude",
        &format!("--person-token {token} revoke x --why y"),
        &format!("--session {eve} claim src/a.rs"),
        &format!("--session={eve} claim src/a.rs"),
        "sandbox-call 1 -- trust",
        "queue run --session=x",
    ] {
        let said = room.sandbox(&["code"], &format!("baton {line}"));
        assert_eq!(said.code, 1, "{line}: {said:?}");
        assert!(said.err.contains("inside the sandbox of role code"), "{line}: {said:?}");
        assert!(said.err.lines().last().unwrap().starts_with("next: "), "{line}: {said:?}");
    }
    let said = room.sandbox(&["code"], "baton trust --json");
    assert_eq!(said.json()["refused"]["code"], "sandboxed", "{said:?}");
    assert!(!room.tree.join("out").exists());
    for line in ["commit src/a.rs -m x", "land", "deploy prod", "sync --pull"] {
        let said = room.sandbox(&["review"], &format!("baton {line}"));
        assert!(said.code == 1 && said.err.contains("this role does not"), "{line}: {said:?}");
    }
    // With another's secret, or none, nobody answers.
    let alone = "unset BATON_BROKER_LINE; BATON_BROKER=";
    let said = room.sandbox(&["code"], &format!("{alone}${{BATON_BROKER%:*}}:0000 baton status"));
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("the broker of this sandbox does not answer"), "{said:?}");
    assert_eq!(room.sandbox(&["code"], &format!("{alone}nonsense baton status")).code, 4);
    // Without the broker the store is there to see and not to write.
    let said = room.sandbox(&["code"], "env -i PATH=\"$PATH\" baton session start");
    assert_ne!(said.code, 0, "{said:?}");
}

#[test]
fn a_hook_inside_acts_as_the_session_of_the_sandbox_whatever_it_says() {
    let Some(room) = Room::new() else { return };
    let payload = |session: &str, event: &str| {
        format!(
            "{{\"session_id\":\"{session}\",\"cwd\":\"{}\",\"hook_event_name\":\"{event}\",\
             \"tool_name\":\"Write\",\"tool_input\":{{\"file_path\":\"{}\",\"content\":\"x\"}}}}",
            room.tree.display(),
            room.tree.join("src/hooked.rs").display()
        )
    };
    let mut other = room.command(&["hook", "claude"]);
    let mut child = other.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    use std::io::Write as _;
    child.stdin.take().unwrap().write_all(payload("other", "SessionStart").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let script = format!(
        "echo '{}' | baton hook claude; echo '{}' | baton hook claude; \
         echo '{}' | baton hook claude; baton session whoami --json; baton claims --mine --json",
        payload("other", "PreToolUse"),
        payload("mine", "PreToolUse"),
        payload("other", "SessionEnd"),
    );
    let said = room.sandbox(&["code"], &script);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("hooked.rs"), "the claim is the sandbox's: {said:?}");
    let seats = room.scratch.baton(&["session", "list", "--json"]).ok().json();
    let live = seats["sessions"].as_array().unwrap().iter();
    let claude: Vec<_> = live.filter(|seat| seat["client"] == "claude").collect();
    assert_eq!(claude.len(), 1, "the other session lives on, and holds nothing: {seats}");
    assert_eq!(claude[0]["claims"], 0, "{seats}");
}

#[test]
fn the_exit_code_is_the_commands() {
    let Some(room) = Room::new() else { return };
    assert_eq!(room.sandbox(&["code"], "exit 7").code, 7);
    assert_eq!(room.sandbox(&["code"], "kill -9 $$").code, 137);
    assert_eq!(room.sandbox(&["code"], "kill -TERM $$").code, 143);
    let said: Said =
        room.command(&["sandbox", "code", "--", "no-such-program"]).output().unwrap().into();
    assert_eq!(said.code, 127, "{said:?}");
    let sessions = room.scratch.baton(&["session", "list", "--json"]).ok().json();
    let role = |seat: &&serde_json::Value| seat["role"] == "code";
    let left = sessions["sessions"].as_array().unwrap().iter().filter(role).count();
    assert_eq!(left, 0, "its session ends with it: {sessions}");
}

#[test]
fn a_network_of_its_own_is_really_its_own() {
    let Some(room) = Room::new() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!(
        "import socket\ntry:\n socket.create_connection(('127.0.0.1', {port}), 2)\n \
         print('reached')\nexcept OSError as error:\n print(error)\n"
    );
    let own = "import socket\ns = socket.create_server(('127.0.0.1', 0))\n\
               socket.create_connection(s.getsockname(), 2)\nprint('own')\n";
    let python = |net: &str, script: &str| {
        let words = ["sandbox", "code", "--net", net, "--", "python3", "-c", script];
        Said::from(room.command(&words).output().unwrap())
    };
    assert!(python("all", &reach).out.contains("reached"));
    let none = python("none", &reach);
    if none.code == 4 && none.err.contains("namespace") {
        return eprintln!("skipped: {}", none.err);
    }
    assert!(none.out.contains("nreachable"), "{none:?}");
    assert!(none.err.contains("a network namespace with no interface"), "{none:?}");
    assert!(python("none", own).code != 0);
    let loopback = python("loopback", &reach);
    assert!(loopback.out.contains("refused"), "{loopback:?}");
    assert!(loopback.err.contains("loopback only"), "{loopback:?}");
    assert_eq!(python("loopback", own).out.trim(), "own");
    // The broker is reached all the same, and the way back is closed.
    let said = room.sandbox(&["code", "--net", "none"], "baton session whoami");
    assert_eq!(said.code, 0, "{said:?}");
    let said = room.sandbox(&["code", "--net", "none"], "nsenter -t 1 -n true || unshare -m true");
    assert_ne!(said.code, 0, "{said:?}");
    let said = room.python("code", &format!("import os\nos.kill({}, 0)", std::process::id()));
    assert!(said.err.contains("PermissionError"), "others get no signals: {said:?}");
}

/// Runs baton where `landlock_create_ruleset` is not there, as on an old kernel.
const WITHOUT_LANDLOCK: &str = r#"
import ctypes, os, struct, sys
program = b"".join(struct.pack("HBBI", *one) for one in [
    (0x20, 0, 0, 0),            # the number of the system call
    (0x15, 0, 1, 444),
    (0x06, 0, 0, 0x00050000 | 38),  # "no such call"
    (0x06, 0, 0, 0x7fff0000),
])
buffer = ctypes.create_string_buffer(program)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
filter = Program(4, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn without_landlock_nothing_is_started_unless_it_is_asked_for() {
    let Some(room) = Room::new() else { return };
    let without = |words: &[&str]| {
        let mut command = Command::new("python3");
        room.scratch.clean(&mut command);
        command.current_dir(&room.tree).args(["-c", WITHOUT_LANDLOCK]);
        Said::from(command.arg(env!("CARGO_BIN_EXE_baton")).args(words).output().unwrap())
    };
    let said = without(&["sandbox", "code", "--", "touch", "ran"]).refused(4);
    assert!(said.err.contains("Landlock") && said.err.contains("--best-effort"), "{said:?}");
    assert!(!room.tree.join("ran").exists());
    let outside = room.outside.join("new");
    let outside = outside.to_str().unwrap();
    let said = without(&["sandbox", "code", "--best-effort", "--", "touch", outside]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("not confined"), "it is said: {said:?}");
}

/// Waits until something is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn begins(room: &Room, script: &str) -> Child {
    let mut command = room.command(&["sandbox", "code", "--", "sh", "-c", script]);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_call_ends_with_its_caller() {
    let Some(room) = Room::new() else { return };
    let eve = room.scratch.session("eve");
    room.scratch.acts(&eve, &["claim", "src/a.rs"]).ok();
    let script = "baton claim src/a.rs --wait 60s & echo $! > pid; wait; touch over; sleep 60";
    let mut child = begins(&room, script);
    room.scratch.until_waiting(1);
    let pid = std::fs::read_to_string(room.tree.join("pid")).unwrap();
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    until("the caller is gone", || room.tree.join("over").exists());
    // Its waiting is over as well: the next one to ask is first in line.
    let bob = room.scratch.session("bob");
    until("nobody waits any more", || {
        room.scratch.acts(&eve, &["release", "--all"]);
        room.scratch.acts(&bob, &["claim", "src/a.rs"]).code == 0
    });
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn a_killed_sandbox_takes_its_command_along_and_is_swept() {
    let Some(room) = Room::new() else { return };
    let script = "trap 'touch ended; exit' TERM; echo $TMPDIR > where; (trap '' TERM; setsid sh -c \
                  'while [ ! -e killed ]; do sleep 0.05; done; baton status 2> late; \
                  echo $? > code' ) & while :; do sleep 0.05; done";
    let mut child = begins(&room, script);
    until("it has begun", || room.tree.join("where").exists());
    std::thread::sleep(Duration::from_millis(200));
    let folder = std::fs::read_to_string(room.tree.join("where")).unwrap();
    let folder = Path::new(folder.trim()).parent().unwrap().to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    until("the command has ended", || room.tree.join("ended").exists());
    std::fs::write(room.tree.join("killed"), "").unwrap();
    until("who is left was told", || room.tree.join("code").exists());
    until("the code is written", || {
        std::fs::read_to_string(room.tree.join("code")).unwrap().trim() == "4"
    });
    let late = std::fs::read_to_string(room.tree.join("late")).unwrap();
    assert!(late.contains("broker") && late.contains("next: "), "{late}");
    // Nobody was there to remove it; the next sandbox, here or in a test beside this one, does.
    room.sandbox(&["verify"], "true");
    assert!(!folder.exists(), "the next one sweeps it");
}

#[test]
fn the_terminals_keys_are_for_the_command() {
    let Some(room) = Room::new() else { return };
    let script = "trap 'echo heard; exit 5' INT; touch ready; while :; do sleep 0.05; done";
    let child = begins(&room, script);
    until("it has begun", || room.tree.join("ready").exists());
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!((said.code, said.out.trim()), (5, "heard"), "{said:?}");
    // Somebody who wants Baton itself to end is heard by the command too.
    std::fs::remove_file(room.tree.join("ready")).unwrap();
    let script = "trap 'exit 6' TERM; touch ready; while :; do sleep 0.05; done";
    let child = begins(&room, script);
    until("it has begun", || room.tree.join("ready").exists());
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(Said::from(child.wait_with_output().unwrap()).code, 6);
}

#[test]
fn a_person_may_open_more_and_an_agent_may_not() {
    let Some(room) = Room::new() else { return };
    let outside = room.outside.to_str().unwrap();
    let said = room.sandbox(&["verify", "--allow-write", outside], "touch $OUTSIDE/new");
    assert_eq!(said.code, 0, "{said:?}");
    // What stays closed whatever the role is closed to a person's word too.
    let script = "echo x >> \"$REPO/.git/config\" || touch $OUTSIDE/more";
    let said = room.sandbox(&["verify", "--allow-write", "/"], script);
    assert!(
        said.err.contains("ermission denied") && room.outside.join("more").exists(),
        "{said:?}"
    );
    let shut = room.sandbox(&["verify", "--allow-write", "../../repo/.git"], "true").refused(2).err;
    assert!(shut.contains("stays closed, whatever the role"), "{shut}");
    let said = room.sandbox(&["reveiw"], "touch src/new").refused(2);
    assert!(said.err.contains("role \"reveiw\" is not allowed"), "{said:?}");
    assert!(said.err.contains("review, scratch"), "{said:?}");
    let eve = room.scratch.session("eve");
    let words = ["sandbox", "verify", "--allow-write", outside, "--", "true"];
    let said = Said::from(room.command(&words).env("BATON_SESSION", &eve).output().unwrap());
    assert!(said.refused(1).err.contains("person"));
}

#[test]
fn a_role_that_names_folders_writes_those() {
    let scratch = Scratch::with_policy("[roles.web]\nwrite = [\"src/\"]\ncommit = false\n");
    let script = "echo x >> src/a.rs && echo x > src/new.rs; echo x >> README.md; \
                  baton commit src/new.rs -m x";
    let said = scratch.baton(&["sandbox", "web", "--", "sh", "-c", script]);
    if said.err.contains("Landlock") {
        return eprintln!("skipped: {said:?}");
    }
    assert!(said.err.contains("README.md: Permission denied"), "{said:?}");
    assert!(scratch.root().join("src/new.rs").exists(), "{said:?}");
    let words =
        ["sandbox", "web", "--", env!("CARGO_BIN_EXE_baton"), "commit", "src/a.rs", "-m", "x"];
    let said = scratch.baton(&words);
    assert!(said.err.contains("this role does not commit"), "{said:?}");
}
