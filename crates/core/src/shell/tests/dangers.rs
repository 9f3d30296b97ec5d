//! Dangerous verbs, and lines that only look like them.
//!
//! A line is judged by all of its verbs; the order is that of the enum.

use crate::shell::danger::{Verb, of};
use crate::shell::{Place, read};

fn verbs(line: &str) -> Vec<Verb> {
    of(&read(line)).into_iter().map(|danger| danger.verb).collect()
}

fn each(wanted: &[Verb], lines: &[&str]) {
    for line in lines {
        assert_eq!(verbs(line), wanted, "{line}");
    }
}

/// One verb in many clothes.
const STASHES: &[&str] = &[
    "git stash",
    "git stash push -m x",
    "git stash pop",
    "git -C sub stash",
    "cd a && git stash",
    "bash -c 'git stash'",
    "sudo git stash",
    "env A=1 git stash",
    "echo $(git stash)",
    "echo `git stash`",
    "(git stash)",
    "true; git stash",
    "if git stash; then :; fi",
    "\\git stash",
    "'git' \"stash\"",
    "/usr/bin/git stash",
    "X=stash; git $X",
    "G=git; $G stash",
    "$(which git) stash",
    "echo stash | xargs git",
    "eval git stash",
    "echo 'git stash' | sh",
    "poetry run git stash",
    "bash <<EOF\ngit stash\nEOF",
    "f() { git stash; }; f",
    "git stash 'unfinished",
    "watch git stash",
    "git --no-pager stash",
    "git st\"\"ash",
    "git sta$@sh",
    "{git,stash}",
    "su bob -c 'git stash'",
];

#[test]
fn verbs_of_git() {
    each(&[Verb::Stash], STASHES);
    each(&[Verb::ResetHard], &["git reset --hard", "git reset --har HEAD~1", "git reset --keep x"]);
    each(&[Verb::Clean], &["git clean -fd", "git clean -fdx src"]);
    each(
        &[Verb::DiscardAll],
        &[
            "git checkout .",
            "git checkout -- .",
            "git restore .",
            "git restore --staged --worktree .",
            "git rm -rf .",
            "git restore /abs/root",
        ],
    );
    let switches = [
        "git checkout main",
        "git checkout -b x",
        "git switch -c x",
        "git rebase main",
        "git merge x",
        "git pull --rebase",
        "git cherry-pick abc",
        "git revert HEAD",
        "git am < x",
        "gh pr checkout 5",
        "git bisect start",
        "git branch -f main HEAD~1",
        "git symbolic-ref HEAD refs/heads/x",
        "git update-ref refs/heads/main HEAD~1",
        "git reset HEAD~1",
        "git reset --soft HEAD~1",
        "git reset main",
        "git reset $X",
    ];
    each(&[Verb::SwitchTree], &switches);
    let adds =
        ["git add -A", "git add .", "git add -u", "git add --al", "git add -Av", "git add ./*"];
    let indexes = [
        "git reset",
        "git reset -q",
        "git reset HEAD",
        "git reset HEAD --",
        "git reset .",
        "git reset HEAD -- .",
        "git restore --staged .",
        "git rm -r --cached .",
        "git add sub/..",
        "git add $PWD",
        "git add /abs/root",
        "git add ../*",
    ];
    each(&[Verb::AddAll], &indexes);
    each(&[Verb::AddAll], &adds);
}

#[test]
fn verbs_of_git_that_commit_push_and_set() {
    let commits = ["git commit -m x", "git commit", "git commit -m '-a'", "git commit --amend"];
    each(&[Verb::PlainCommit], &commits);
    each(&[Verb::NamedCommit], &["git commit -m x -- b.txt", "git commit b.txt -m x"]);
    let all = ["git commit -am x", "git commit -a", "git commit --all -m x", "git commit -m x ."];
    each(&[Verb::AddAll, Verb::PlainCommit], &all);
    let none = ["git commit -n -m x", "git commit --no-verify", "git commit --no-ver -m x"];
    each(&[Verb::PlainCommit, Verb::NoVerify], &none);
    each(&[Verb::Push], &["git push", "git push origin main"]);
    let forced = [
        "git push -f",
        "git push --force",
        "git push --force-with-lease origin x",
        "git push --force-with-lease=x origin x",
        "git push origin +main",
        "git push origin :old",
        "git push --mirror",
        "git push --delete origin x",
    ];
    each(&[Verb::ForcePush, Verb::Push], &forced);
    each(&[Verb::Push, Verb::NoVerify], &["git push --no-verify"]);
    each(
        &[Verb::PlainCommit, Verb::NoVerify],
        &[
            "git -c core.hooksPath=/dev/null commit -m x",
            "git -ccore.hookspath=x commit",
            "GIT_DIR=x git commit",
            "git --git-dir=x commit",
            "GIT_CONFIG_COUNT=1 git commit -m x",
        ],
    );
    each(&[Verb::NoVerify], &["GIT_EXEC_PATH=x git log"]);
    each(&[Verb::NoVerify], &["git -c alias.x=stash x", "export GIT_DIR=x", "GIT_DIR=x"]);
    let hooks = [
        "git config core.hooksPath x",
        "git config --global core.hookspath /dev/null",
        "git config --unset core.hooksPath",
        "git config set core.hooksPath x",
        "git config alias.ci 'commit --no-verify'",
        "git config --remove-section core",
        "git config remove-section Core",
        "git config --rename-section core x",
        "git config rename-section x core",
        "git config edit",
        "git config --global -e",
        "git config include.path ../x",
        "git config set includeIf.gitdir:/x/.path ../x",
        "git config --add includeIf.onbranch:main.path ../x",
    ];
    each(&[Verb::ConfigHooks], &hooks);
    each(&[Verb::PlainCommit, Verb::NoVerify], &["git -c include.path=x commit -m x"]);
    let others = [
        "git config --remove-section branch.x",
        "git config --rename-section branch.x branch.y",
        "git config --get core.hooksPath",
        "git config core.editor vi",
    ];
    each(&[], &others);
}

#[test]
fn a_terminal_elsewhere_makes_nobody_a_person() {
    let away = [
        "tmux new -d 'baton policy approve --yes'",
        "tmux send-keys -t 0 'baton trust --yes' Enter",
        "screen -dm bash -c 'baton trust --yes'",
        "socat - EXEC:'baton gate approve g1',pty",
    ];
    each(&[Verb::ActsAsPerson], &away);
    for line in ["tmux new -d 'baton status'", "tmux ls", "screen -dm make", "at now < approve"] {
        assert!(verbs(line).is_empty(), "{line}");
    }
}

#[test]
fn acting_as_somebody_else() {
    let persons = [
        "baton gate approve G-1",
        "baton gate deny G-1",
        "baton --json gate approve G-1",
        "baton -C x trust",
        "baton revoke a",
        "baton person token f",
        "baton policy approve",
        "baton task revive T-1",
        "baton store restore f",
        "baton worktree remove x --force",
        "./target/release/baton trust",
        "script -qc 'baton status' /dev/null",
        "unbuffer baton status",
        "expect -c 'spawn baton trust'",
        "baton init --remove --yes",
        "BATON_PERSON_TOKEN_FILE=x baton status",
        "baton --person-token x status",
        "unset BATON_SESSION",
        "BATON_SESSION= baton status",
        "env -u BATON_SESSION baton status",
        "env -i baton status",
        "export BATON_PERSON_TOKEN_FILE=x",
    ];
    each(&[Verb::ActsAsPerson], &persons);
    let sessions = [
        "BATON_SESSION=x baton status",
        "export BATON_SESSION=x",
        "BATON_SESSION=x",
        "baton --session a.b status",
    ];
    each(&[Verb::ActsAsSession], &sessions);
    let clients = [
        "CLAUDE_CODE_SESSION_ID=x baton release a.txt",
        "env CODEX_THREAD_ID=x baton status",
        "CODEX_THREAD_ID= baton status",
        "export GEMINI_SESSION_ID=x",
        "CLAUDE_CODE_SESSION_ID=x; baton status",
        "echo '{}' | baton hook claude",
        "baton --json hook codex",
        "baton --session a.b once k -- ls",
    ];
    each(&[Verb::ActsAsSession], &clients);
    each(&[Verb::ActsAsPerson], &["CLAUDECODE= baton status", "env -u CODEX_CI baton trust"]);
    each(&[Verb::ActsAsPerson], &["baton once k -- baton trust"]);
    let inside = ["baton once k -- git reset --hard", "baton journal --exec git reset --hard"];
    each(&[Verb::ResetHard], &inside);
    assert_eq!(verbs("kill -9 $(pgrep -f baton)"), [Verb::KillsBaton]);
    assert_eq!(verbs("ps aux | grep baton | xargs kill"), [Verb::KillsBaton]);
    assert_eq!(verbs("P=$(pidof baton); kill $P"), [Verb::KillsBaton]);
    assert_eq!(verbs("kill $(cat .git/baton/gate)"), [Verb::KillsBaton]);
    assert_eq!(verbs("kill $(ps aux | awk '/baton/{print $2}')"), [Verb::KillsBaton]);
    assert_eq!(verbs("pgrep baton > f; kill $(cat f)"), [Verb::KillsBaton]);
    each(&[Verb::KillsBaton], &["pkill baton", "killall -9 baton", "pkill -f 'baton mcp'"]);
    let own = [
        "rm -rf .git/hooks",
        "echo > .baton/store/x",
        "rm -rf .baton",
        "chmod -R a-w .git",
        "find .git -name '*.lock' -delete",
        "cd .git && rm index",
        "rm -rf .GIT",
        "rm .git/*",
        "mv .git x/",
    ];
    for line in own {
        assert!(verbs(line).contains(&Verb::DeletesBaton), "{line}: {:?}", verbs(line));
    }
}

#[test]
fn what_only_looks_like_it() {
    each(
        &[],
        &[
            "git status",
            "env -i git status",
            "CLAUDECODE= claude -p x",
            "git commit --dry-run",
            "git checkout --ours b.txt",
            "git add -A sub/",
            "git add -u b.txt",
            "git symbolic-ref HEAD",
            "rm -rf vendor/lib/.git",
            "rm -rf /tmp/x/.git",
            "sed -i s/a/b/ .baton/rules.md",
            "git stash list",
            "git log --grep 'git stash'",
            "echo 'git stash'",
            "echo git stash",
            "rg 'git reset --hard'",
            "cat <<'EOF'\ngit stash\nEOF",
            "# git stash",
            "git add a.txt src/b.rs",
            "git clean -n",
            "git checkout -- a.txt",
            "git checkout HEAD~1 -- a.txt",
            "git restore a.txt",
            "git restore --staged a.txt",
            "git rm --cached a.txt",
            "git stash --help",
            "git clean -h",
            "GIT_DIR=.git git log",
            "GIT_CONFIG_GLOBAL=/dev/null git status",
            "cd /x/baton-app && kill $(cat server.pid)",
            "ls baton.toml; kill $(cat x)",
            "cat baton.toml; kill $(cat x)",
            "grep -rn baton . ; kill $(lsof -t -i:3000)",
            "git reset HEAD a.txt",
            "git reset --soft",
            "git reset -- a.txt",
            "git reset HEAD -- a.txt b.txt",
            "git reset -p",
            "git config core.hooksPath",
            "git config --get core.hooksPath",
            "git config user.name x",
            "git branch -a",
            "git push --dry-run",
            "git fetch --all",
            "baton status",
            "baton gate list",
            "baton claim a",
            "touch .gitignore .github/x",
            "cat .git/config",
            "apt install git",
            "ssh host git pull",
            "docker exec c git pull",
            "f() { git stash; }",
            "kill 123",
        ],
    );
    let danger = &of(&read("cd a && git -C b stash push x"))[0];
    assert_eq!(danger.argv.join(" "), "git -C b stash push x");
}

#[test]
fn a_danger_is_one_where_it_takes_effect() {
    let path = |text: &str| Place::Path(text.to_owned());
    let places = [
        ("git stash", path(".")),
        ("cd a && git -C b stash", path("a/b")),
        ("git -C /x reset --hard", path("/x")),
        ("cd /x && git add -A", path("/x")),
        ("cd ~/x && git clean -fd", Place::Home("x".to_owned())),
        ("poetry run git -C /x stash", path("/x")),
        ("cd $(mktemp -d) && git add -A", path("/tmp/tmp.XXXXXXXXXX")),
        ("cd /x || exit 1; git add .", path("/x")),
        // These may be about any repository.
        ("cd $(make where) && git add -A", Place::Unknown),
        ("cd /x && git --git-dir=/y/.git reset --hard", Place::Unknown),
        ("cd /x && GIT_DIR=/y/.git git reset --hard", Place::Unknown),
        ("cd /x && export GIT_DIR=/y/.git", Place::Unknown),
        ("cd /x && git config --global core.hooksPath z", Place::Unknown),
    ];
    for (line, folder) in places {
        let dangers = of(&read(line));
        assert!(!dangers.is_empty(), "{line}");
        assert!(dangers.iter().all(|danger| danger.folder == folder), "{line}: {dangers:?}");
    }
}
