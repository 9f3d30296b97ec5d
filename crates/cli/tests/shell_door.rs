//! The shell door: what a line writes, wherever it names it from, and what it only seems to write.

use serde_json::json;

use crate::harness::Scratch;
use crate::hooks::{Agent, denied};

fn claude<'a>(scratch: &'a Scratch, id: &'static str) -> Agent<'a> {
    Agent { scratch, client: "claude", id }
}

/// Every line is denied to the second session, with one of these words.
fn each_denied(agent: &Agent<'_>, word: &str, lines: &[&str]) {
    for line in lines {
        let why = denied(&agent.shell("before", line)).unwrap_or_else(|| panic!("passed: {line}"));
        assert!(why.contains(word), "{line}: {why}");
    }
}

fn each_passes(agent: &Agent<'_>, lines: &[&str]) {
    for line in lines {
        let said = agent.shell("before", line);
        assert_eq!(denied(&said), None, "{line}");
        assert!(!said.out.contains("not judged"), "{line}: {said:?}");
    }
}

/// What is held, as it is shown.
fn held(scratch: &Scratch) -> Vec<String> {
    let claims = scratch.baton(&["claims", "--json"]).ok().json();
    let claims = claims["claims"].as_array().unwrap();
    let resources = claims.iter().flat_map(|claim| claim["resources"].as_array().unwrap());
    let mut held: Vec<String> =
        resources.map(|resource| resource.as_str().unwrap().to_owned()).collect();
    held.sort_unstable();
    held
}

const PATCH: &str = "cd src && git apply <<'E'\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n\
                     -fn a() {}\n+fn b() {}\nE";

#[test]
fn a_held_file_is_seen_wherever_the_line_names_it_from() {
    let scratch = Scratch::workspace();
    assert_eq!(denied(&claude(&scratch, "a").write("src/a.rs", "x\n")), None);
    let other = claude(&scratch, "b");
    let below = format!("rm {}/src/*.rs", scratch.root().display());
    let lines = [
        "echo x > ~/../repo/src/a.rs",
        "cd ~/../repo && sed -i s/a/b/ src/a.rs",
        "rm ~/../repo/src/*.rs",
        &below,
        "rm -f ../repo/src/*.rs",
        "R=$(pwd); cd src && echo x > \"$R\"/src/a.rs",
        PATCH,
        "baton once k -- cp README.md src/a.rs",
        "baton sandbox code -- sh -c 'echo > src/a.rs'",
        "rm -rf src",
        "git checkout -- src",
        "git restore src",
        "mv src old",
        "find . -name '*.rs' -delete",
        "chmod -x src/a.rs",
        "echo x > src/a.rs; rm -f [[:digit:]]*",
        "python3 -c \"open('src/a.rs', 'w').write('x')\"",
        "cd src && python3 - <<'E'\nopen('a.rs', 'a').write('x')\nE",
        "node -e \"require('fs').writeFileSync('src/a.rs', 'x')\"",
    ];
    each_denied(&other, "is held by", &lines);
    let why = denied(&other.shell("before", "cp README.md src/a.rs")).unwrap();
    assert_eq!(why.matches("is held by").count(), 1, "{why}");
    assert_eq!(held(&scratch), ["src/a.rs"]);
}

#[test]
fn a_held_file_is_seen_behind_a_link_and_before_a_formatter() {
    let scratch = Scratch::workspace();
    assert_eq!(denied(&claude(&scratch, "a").write("src/a.rs", "x\n")), None);
    let other = claude(&scratch, "b");
    let lines = [
        "ln -s src/a.rs l && echo HACK > l",
        "ln src/a.rs l && echo HACK > l",
        "ln -s src l && cd l && echo HACK > a.rs",
        "cp -l src/a.rs l; sed -i s/x/y/ l",
        "cp -T README.md src/a.rs",
        "rustfmt src/a.rs",
        "prettier --write src/a.rs",
        "npx prettier --write src/a.rs",
        "black src/a.rs",
        "gofmt -w src/a.rs",
        "eslint --fix src/a.rs",
        "ruby -i -pe x src/a.rs",
        "sponge src/a.rs",
        "ruff format src/a.rs",
        "clang-format -i src/a.rs",
    ];
    each_denied(&other, "src/a.rs is held by", &lines);
    each_passes(&other, &["rustfmt --check src/a.rs", "prettier src/a.rs", "black ."]);
    assert_eq!(held(&scratch), ["src/a.rs"]);
}

/// Others work in the tree, and one of them holds `src/a.rs`.
#[test]
fn a_sweep_is_one_of_the_whole_tree_and_nothing_less() {
    let scratch = Scratch::workspace();
    scratch.write("lib/c.rs", "c\n");
    scratch.write("lib/deep/d.rs", "d\n");
    assert_eq!(denied(&claude(&scratch, "a").write("src/a.rs", "x\n")), None);
    scratch.write("src/a.rs", "x\n");
    let other = claude(&scratch, "b");
    let innocent = [
        "cd lib && git add .",
        "cd lib && git checkout .",
        "cd lib && git restore .",
        "cd lib && git restore --staged .",
        "cd lib/deep && git add ..",
        "git clean -fd lib",
        "cd lib && git clean -fd",
        "git add lib/../lib/c.rs",
        "cd $(mktemp -d) && git add .",
        "T=$(mktemp -d); cd \"$T\" && git init -q && git add . && git commit -qm x",
        "cd /tmp/nowhere || exit 1; git add .",
        "cd /tmp/nowhere || { echo no; exit 1; }; git add -A",
        "cd /x/baton-app && kill $(cat server.pid)",
        "ls baton.toml; kill $(cat x)",
        "GIT_DIR=.git git log",
        "git stash --help",
        "git reset lib/c.rs",
    ];
    each_passes(&other, &innocent);
    let root = scratch.root().display().to_string();
    each_denied(&other, "src/a.rs until", &["cd src && git checkout .", "git rm -rf src"]);
    each_denied(&other, "uncommitted edits", &["git clean -fd src", "cd src && git clean -f"]);
    let index = [
        &format!("git add {root}"),
        "git add lib/..",
        "cd lib && git add ..",
        "cd lib && git add -A",
        "git add \"$PWD\"",
        "git reset",
        "git reset -q HEAD",
        "git rm -r --cached .",
        "cd $(make where) && git add .",
    ];
    each_denied(&other, "changed or staged along", &index);
    each_denied(&other, "under their hands", &["git reset HEAD~1", "git reset --soft HEAD~1"]);
}

#[test]
fn what_is_not_surely_written_is_not_refused_and_no_folder_is_claimed() {
    let scratch = Scratch::workspace();
    scratch.write(".gitignore", "node_modules/\n*.log\n");
    scratch.write("node_modules/x.js", "x\n");
    scratch.write("vendor/lib/.git/config", "");
    scratch.write("b.txt", "1\n");
    assert_eq!(denied(&claude(&scratch, "a").write("src/a.rs", "x\n")), None);
    let lines = [
        "find . -name '*.pyc' -delete",
        "find . -newer b.txt -delete",
        "tar xzf pkg.tgz",
        "unzip -q pkg.zip",
        "chmod -R u+w .",
        "rsync -a /tmp/nowhere/ ./",
        "rm -rf node_modules",
        "rm -f *.log",
        "touch build.log",
        "rm -rf vendor/lib/.git",
        "git checkout b.txt",
        "git commit -m x -- b.txt",
        "git commit --dry-run",
        "git add -A docs/",
        "git add -u b.txt",
    ];
    each_passes(&claude(&scratch, "b"), &lines);
    assert_eq!(held(&scratch), ["b.txt", "src/a.rs"]);
}

#[test]
fn a_zone_below_a_folder_counts_by_its_files() {
    let policy = "[[zone]]\npaths = [\"baton.toml\"]\npolicy = \"require\"\n\
                  [[zone]]\npaths = [\"**/secret.env\"]\npolicy = \"human\"\n";
    let scratch = Scratch::with_policy(policy);
    scratch.write("conf/secret.env", "x\n");
    scratch.write("build/out.txt", "x\n");
    let agent = claude(&scratch, "a");
    let free = ["git clean -fd", "chmod -R u+w .", "find . -name '*.pyc' -delete", "rm -rf build"];
    each_passes(&agent, &free);
    each_denied(
        &agent,
        "baton claim baton.toml",
        &["rm -f *.toml", "find . -name '*.toml' -delete"],
    );
    each_denied(&agent, "conf/secret.env is for a person", &["rm -rf conf"]);
    assert_eq!(held(&scratch), Vec::<String>::new());
}

#[test]
fn a_folder_that_is_copied_is_claimed_file_by_file_afterwards() {
    let scratch = Scratch::workspace();
    let agent = claude(&scratch, "a");
    each_passes(&agent, &["cp -r src lib"]);
    assert_eq!(held(&scratch), Vec::<String>::new());
    scratch.write("lib/a.rs", "fn a() {}\n");
    assert_eq!(denied(&agent.shell("after", "cp -r src lib")), None);
    assert_eq!(held(&scratch), ["lib/a.rs"]);
}

#[test]
fn a_shell_only_adds_to_an_append_zone() {
    let scratch = Scratch::with_policy("[[zone]]\npaths = [\"LOG.md\"]\npolicy = \"append\"\n");
    scratch.write("LOG.md", "l1\nl2\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "log", "--no-verify"]);
    let agent = claude(&scratch, "a");
    let changes = ["sed -i s/l2/x/ LOG.md", "echo x > LOG.md", "rm LOG.md", "cp README.md LOG.md"];
    each_denied(&agent, "is in an append zone", &changes);
    each_passes(&agent, &["echo x >> LOG.md", "echo x | tee -a LOG.md"]);
    let line = "python3 write.py";
    each_passes(&agent, &[line]);
    scratch.write("LOG.md", "l1\nl2\nl3\n");
    let said = agent.shell("after", line);
    assert!(!said.out.contains("append zone"), "{said:?}");
    each_passes(&agent, &[line]);
    scratch.write("LOG.md", "other\n");
    let said = agent.shell("after", line);
    assert!(said.out.contains("is in an append zone"), "{said:?}");
}

#[test]
fn the_folder_of_a_shell_tool_counts() {
    let scratch = Scratch::workspace();
    assert_eq!(denied(&claude(&scratch, "a").write("src/a.rs", "x\n")), None);
    let src = scratch.root().join("src").display().to_string();
    let tools = [
        ("gemini", "run_shell_command", json!({ "command": "echo x > a.rs", "dir_path": "src" })),
        ("opencode", "bash", json!({ "command": "echo x > a.rs", "workdir": src })),
        ("codex", "shell", json!({ "command": ["touch", "a.rs"], "workdir": src })),
        ("cursor", "Shell", json!({ "command": "echo x > a.rs", "working_directory": src })),
    ];
    for (client, name, input) in tools {
        let agent = Agent { scratch: &scratch, client, id: "other" };
        let why = denied(&agent.tool("before", name, &input)).unwrap_or_else(|| panic!("{client}"));
        assert!(why.contains("src/a.rs is held by"), "{why}");
    }
}

#[test]
fn nobody_acts_as_another_session_from_a_shell() {
    let scratch = Scratch::workspace();
    let lines = [
        "CLAUDE_CODE_SESSION_ID=x baton release src/a.rs",
        "env CODEX_THREAD_ID=x baton status",
        "echo '{\"session_id\":\"x\"}' | baton hook claude",
    ];
    each_denied(&claude(&scratch, "a"), "you act as your own session", &lines);
}

#[test]
fn an_edit_that_cannot_be_read_or_judged_is_denied() {
    let scratch = Scratch::workspace();
    assert_eq!(denied(&claude(&scratch, "a").write("src/a.rs", "x\n")), None);
    let other = claude(&scratch, "b");
    let input = json!({ "file_path": ["src/a.rs"], "content": "x" });
    let why = denied(&other.tool("before", "Write", &input)).expect("no path");
    assert!(why.contains("the path of this edit is not a text"), "{why}");
    let codex = Agent { scratch: &scratch, client: "codex", id: "c" };
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-fn a() {}\n+x\n*** End Patch\n";
    let input = json!({ "command": ["apply_patch", patch] });
    let why = denied(&codex.tool("before", "apply_patch", &input)).expect("a list");
    assert!(why.contains("is held by"), "{why}");
    for count in [1_001, 2_001] {
        let adds = (0..count).map(|at| format!("*** Add File: n/{at}\n+x\n")).collect::<String>();
        let patch = format!("*** Begin Patch\n{adds}{}", &patch["*** Begin Patch\n".len()..]);
        let input = json!({ "command": patch });
        let why = denied(&codex.tool("before", "apply_patch", &input)).expect("too large");
        assert!(why.contains("smaller parts"), "{why}");
    }
}

#[test]
fn one_command_is_refused_in_one_sentence() {
    let scratch = Scratch::workspace();
    assert_eq!(denied(&claude(&scratch, "a").write("src/a.rs", "x\n")), None);
    let other = claude(&scratch, "b");
    for line in ["git commit -am x", "git commit --no-verify -m x"] {
        let why = denied(&other.shell("before", line)).expect(line);
        assert_eq!(why.matches("was not run").count(), 1, "{why}");
        assert!(why.contains("baton commit -m"), "{why}");
    }
    let why = denied(&other.shell("before", "rm src/a.rs && tee src/a.rs < b")).expect("held");
    assert_eq!(why.matches("is held by").count(), 1, "{why}");
}

#[test]
fn a_role_opens_no_sandbox_of_a_wider_one() {
    let scratch = Scratch::workspace();
    let started = scratch.baton(&["session", "start", "--role", "review", "--json"]).ok().json();
    let credential = started["credential"].as_str().unwrap();
    let said = scratch.acts(credential, &["sandbox", "code", "--best-effort", "--", "true"]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.err.contains("going from role review to code"), "{said:?}");
}

/// Steps that lead nowhere are not said.
#[test]
fn a_denial_names_a_folder_as_a_person_would() {
    let scratch = Scratch::workspace();
    let ann = claude(&scratch, "ann");
    for line in ["rm -rf .", "rm -rf ./.git/."] {
        let why = denied(&ann.shell("before", line)).unwrap_or_else(|| panic!("passed: {line}"));
        assert!(why.contains("was not run"), "{line}: {why}");
        assert!(!why.contains("/./") && !why.contains("/.`"), "{line}: {why}");
    }
}

/// Git's own door judges what goes into it; here it counts whose work the index has.
#[test]
fn a_commit_of_ones_own_files_is_nobodys_danger() {
    let scratch = Scratch::workspace();
    let (ann, ben) = (claude(&scratch, "a"), claude(&scratch, "b"));
    assert_eq!(denied(&ann.write("mine.txt", "x\n")), None);
    scratch.write("mine.txt", "x\n");
    let lines = ["git add mine.txt && git commit -m x", "git commit -m x", "git commit -m x -q"];
    // One that only looks on, and one that has work of its own here.
    ben.shell("before", "ls");
    each_passes(&ann, &lines);
    assert_eq!(denied(&ben.write("theirs.txt", "x\n")), None);
    scratch.write("theirs.txt", "x\n");
    each_passes(&ann, &lines);
    scratch.git(&["add", "theirs.txt"]);
    each_denied(&ann, "it would take theirs.txt along, which you do not hold", &lines);
}

/// No hook tells of a person's editor: what nobody holds is saved before it would be gone.
#[test]
fn s17_what_a_person_has_not_committed_is_saved_before_a_sweep() {
    for (line, file) in [
        ("git reset --hard", "README.md"),
        ("git checkout -- .", "README.md"),
        ("git clean -fd", "notes.txt"),
    ] {
        let scratch = Scratch::workspace();
        let ann = claude(&scratch, "ann");
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "all"]);
        assert_eq!(denied(&ann.write("src/a.rs", "of ann\n")), None);
        scratch.write("src/a.rs", "of ann\n");
        scratch.write(file, "of a person\n");
        let said = ann.shell("before", line);
        assert_eq!(denied(&said), None, "alone: {line}");
        assert!(said.out.contains("that are not yours were saved first"), "{line}: {said:?}");
        let listed = scratch.baton(&["rescue", "list", "--json"]).ok().json();
        assert_eq!(listed["rescues"][0]["files"], json!([file]), "{line}: {listed}");
    }
}

/// What a program wrote is older than its claim; and the clock of files is a little slow.
#[test]
fn what_was_claimed_and_committed_is_free_again_whenever_it_was_written() {
    Scratch::on_each_store("", |scratch| {
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "all"]);
        let bob = Agent { scratch, client: "codex", id: "bob" };
        for name in ["one.txt", "two.txt", "three.txt"] {
            let line = format!("python3 -c \"open('{name}', 'w').write('x')\"");
            assert_eq!(denied(&bob.shell("before", &line)), None);
            scratch.write(name, "x\n");
            bob.shell("after", &line);
            assert_eq!(held(scratch), [name]);
            let line = format!("git add {name} && git commit -qm {name}");
            assert_eq!(denied(&bob.shell("before", &line)), None);
            scratch.git(&["add", name]);
            scratch.git(&["commit", "-qm", name]);
            bob.shell("after", &line);
            assert!(held(scratch).is_empty(), "{name}: {:?}", held(scratch));
        }
    });
}
