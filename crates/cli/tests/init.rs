//! `baton init`: what it finds, makes, keeps and refuses.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Said, Scratch};

/// Everything in a folder with its content, to see that nothing was touched.
fn picture(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                let target = std::fs::read_link(path).unwrap();
                found.push((name, target.to_string_lossy().into_owned().into_bytes()));
            } else {
                found.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn at(scratch: &Scratch, folder: &Path, words: &[&str]) -> Said {
    scratch.command(words).current_dir(folder).output().unwrap().into()
}

fn rich() -> Scratch {
    let scratch = Scratch::repository();
    for file in ["Cargo.toml", "Cargo.lock", "CHANGELOG.md", "AGENTS.md", "migrations/1.sql"] {
        scratch.write(file, "x\n");
    }
    scratch.write(".gitignore", "ignored/\n");
    scratch.write("ignored/yarn.lock", "x\n");
    scratch
}

#[test]
fn it_proposes_what_is_there_and_says_what_it_did() {
    let scratch = rich();
    let said = scratch.baton(&["init", "--yes"]).ok();
    let out =
        said.out.replace(&scratch.root().canonicalize().unwrap().display().to_string(), "ROOT");
    let digits = |word: &str| word.len() == 32 && word.chars().all(|c| c.is_ascii_hexdigit());
    let out: Vec<String> = out
        .lines()
        .map(|line| {
            let words = line.split(' ').map(|word| match word {
                _ if digits(word) => "ID",
                _ if word.starts_with("3.") => "VERSION",
                _ => word,
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert!(out.len() <= 12, "{out:?}");
    insta::assert_snapshot!(out.join("\n"), @r#"
    made  workspace ID
    made  store SQLite VERSION in ROOT/.git/baton/store.db
    wrote baton.toml: 2 serial, 2 require, 1 append, the rest auto; before landing: cargo
    now   baton.toml is in force

    next:
      git add baton.toml                           share the zones
      baton init --agents claude,codex             wire your agents
      baton trust                                  see and allow the checks
      eval "$(baton session start --export)"       begin to work
      baton claim src/                             take what you will edit
      baton status                                 see who holds what
    "#);
    let text = std::fs::read_to_string(scratch.root().join("baton.toml")).unwrap();
    assert!(text.contains("paths = [\"Cargo.lock\"]\npolicy = \"serial\""), "{text}");
    assert!(!text.contains("yarn"), "ignored files are nobody's business: {text}");
    let mode = std::fs::metadata(scratch.root().join("baton.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o700, 0o600, "an ordinary file");
}

#[test]
fn the_document_has_the_agreed_names() {
    let scratch = rich();
    let first = scratch.baton(&["init", "--yes", "--agents", "none", "--json"]).ok().json();
    assert_eq!(first["made"], true);
    assert_eq!(first["config"], "written");
    assert_eq!(first["policy"], "in_force");
    let zones = first["zones"].as_array().unwrap();
    assert!(zones.iter().all(|zone| zone["reason"].is_string()), "{zones:?}");
    let again = scratch.baton(&["init", "--json"]).ok().json();
    assert_eq!(again["made"], false);
    assert_eq!(again["config"], "kept");
    assert_eq!(again["policy"], "unchanged");
    for name in ["workspace", "tree", "store"] {
        assert_eq!(first[name], again[name], "{name}");
    }
    assert_eq!(again["zones"].as_array().unwrap().len(), zones.len());
}

#[test]
fn lesson_15_init_never_destroys() {
    let scratch = rich();
    scratch.write("baton.toml", "# mine\n[[zone]]\npaths = [\"src/\"]\npolicy = \"require\"\n");
    let before = picture(&scratch.root());
    scratch.baton(&["init", "--yes"]).ok();
    let session = scratch.session("ann");
    scratch.acts(&session, &["claim", "src/"]).ok();
    for _ in 0..3 {
        scratch.baton(&["init", "--yes"]).ok();
    }
    let claims = scratch.baton(&["claims", "--json"]).ok().json();
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1, "{claims}");
    let after: Vec<_> = picture(&scratch.root())
        .into_iter()
        .filter(|(name, _)| !name.starts_with(".git/baton/"))
        .collect();
    assert_eq!(before, after, "only Baton's own folder was touched");
}

#[test]
fn no_message_of_init_suggests_force() {
    let scratch = rich();
    let help = scratch.baton(&["init", "--help"]).ok().out;
    assert!(!help.contains("force"), "{help}");
    let refused = scratch.baton(&["init", "--force"]).refused(2);
    assert!(refused.err.contains("next: baton init --help"), "{refused:?}");
}

#[test]
fn without_a_terminal_it_wants_yes_and_changes_nothing() {
    let scratch = rich();
    let before = picture(&scratch.root());
    let said = scratch.baton(&["init"]).refused(1);
    assert!(said.err.contains("next: baton init --yes"), "{said:?}");
    let document = scratch.baton(&["init", "--json"]).json();
    assert_eq!(document["refused"]["code"], "needs_yes");
    assert!(document["refused"]["zones"].as_array().unwrap().len() > 3, "{document}");
    assert_eq!(before, picture(&scratch.root()));
}

#[test]
fn a_person_is_asked_once() {
    let scratch = rich();
    let before = picture(&scratch.root());
    let Some(no) = scratch.on_terminal(&["init"], "n\n") else { return };
    assert_eq!(no.code, 1, "{no:?}");
    assert!(no.out.contains("proposes") && no.out.contains("[Y/n]"), "{no:?}");
    assert!(no.out.contains("nothing was changed"), "{no:?}");
    assert_eq!(before, picture(&scratch.root()));
    let yes = scratch.on_terminal(&["init"], "\n").unwrap();
    assert_eq!(yes.code, 0, "{yes:?}");
    assert_eq!(yes.out.matches("[Y/n]").count(), 1, "{yes:?}");
    assert!(scratch.root().join("baton.toml").exists());
}

#[test]
fn a_bad_baton_toml_is_one_line_and_nothing_changes() {
    let cases: [(&[u8], &str); 10] = [
        (b"[[zone]\n", "baton.toml:1: "),
        (b"\n\ncolour = 1\n", "baton.toml:3: unknown key `colour`"),
        (b"[[zone]]\npaths = [\"a\"]\npolicy = \"x\"\n", "baton.toml:3: there is no policy `x`"),
        (b"[[zone]]\npaths = [\"a[\"]\npolicy = \"off\"\n", "baton.toml:2: \"a[\""),
        (b"[[zone]]\npaths = [\"@a\"]\npolicy = \"off\"\n", "baton.toml:2: \"@a\" is a name"),
        (b"[[zone]]\npaths = [\"/a\"]\npolicy = \"off\"\n", "baton.toml:2: \"/a\""),
        (b"[resource.\"@gpu\"]\ncapacity = 0\n", "baton.toml:2: @gpu"),
        (b"# \xff\n", "baton.toml:1: the text is not UTF-8"),
        (b"zone = 3\n", "baton.toml:1: "),
        (&[b'#'; 300_000], "baton.toml: it is larger than"),
    ];
    let scratch = Scratch::repository();
    for (text, expected) in cases {
        std::fs::write(scratch.root().join("baton.toml"), text).unwrap();
        let said = scratch.baton(&["init", "--yes"]).refused(2);
        assert!(said.err.contains(expected), "{expected}: {said:?}");
        assert!(!scratch.store().exists(), "{expected}");
    }
    let six = ["off", "auto", "append", "require", "serial", "human"];
    scratch.write("baton.toml", "[[zone]]\npaths = [\"a\"]\npolicy = \"x\"\n");
    let said = scratch.baton(&["init", "--yes"]).refused(2);
    assert!(six.iter().all(|word| said.err.contains(word)), "{said:?}");
}

#[test]
fn a_baton_toml_that_is_no_plain_file_is_refused() {
    let scratch = Scratch::repository();
    let file = scratch.root().join("baton.toml");
    std::fs::create_dir(&file).unwrap();
    scratch.baton(&["init", "--yes"]).refused(2);
    std::fs::remove_dir(&file).unwrap();
    for target in ["../outside.toml", "nowhere", "README.md"] {
        symlink(target, &file).unwrap();
        let said = scratch.baton(&["init", "--yes"]).refused(2);
        assert!(said.err.contains("symbolic link"), "{said:?}");
        std::fs::remove_file(&file).unwrap();
    }
    assert!(!scratch.path("outside.toml").exists());
    assert!(!scratch.store().exists());
}

#[test]
fn a_store_is_never_led_away_by_a_link() {
    let scratch = Scratch::repository();
    let away = scratch.path("away");
    std::fs::create_dir(&away).unwrap();
    symlink(&away, scratch.store()).unwrap();
    let said = scratch.baton(&["init", "--yes"]).refused(1);
    assert!(said.err.contains("it is a symbolic link"), "{said:?}");
    std::fs::remove_file(scratch.store()).unwrap();
    std::fs::write(scratch.store(), "mine").unwrap();
    scratch.baton(&["init", "--yes"]).refused(1);
    assert_eq!(std::fs::read_to_string(scratch.store()).unwrap(), "mine");
    let plain = scratch.path("plain");
    std::fs::create_dir(&plain).unwrap();
    symlink(&away, plain.join(".baton")).unwrap();
    at(&scratch, &plain, &["init", "--yes"]).refused(1);
    assert_eq!(std::fs::read_dir(&away).unwrap().count(), 0);
    assert!(!plain.join("baton.toml").exists());
}

#[test]
fn many_at_once_end_with_one_workspace() {
    let scratch = rich();
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = scratch.command(&["init", "--yes", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let said: Vec<Said> =
        children.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
    let documents: Vec<_> = said.into_iter().map(|said| said.ok().json()).collect();
    let count = |name: &str, value: serde_json::Value| {
        documents.iter().filter(|document| document[name] == value).count()
    };
    assert_eq!(count("workspace", documents[0]["workspace"].clone()), 8);
    assert_eq!(count("made", true.into()), 1, "{documents:?}");
    assert_eq!(count("config", "written".into()), 1, "{documents:?}");
    assert_eq!(count("policy", "in_force".into()), 1, "{documents:?}");
    let drafts = std::fs::read_dir(scratch.root()).unwrap();
    let drafts = drafts
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".new"));
    assert_eq!(drafts.count(), 0);
}

#[test]
fn a_subdirectory_means_its_repository() {
    let scratch = Scratch::repository();
    at(&scratch, &scratch.root().join("src"), &["init", "--yes"]).ok();
    assert!(scratch.root().join("baton.toml").exists());
    assert!(!scratch.root().join("src/baton.toml").exists());
    let said = scratch.baton(&["-C", "src", "init", "--json"]).ok().json();
    assert_eq!(said["made"], false);
}

#[test]
fn a_linked_worktree_shares_the_workspace() {
    let scratch = Scratch::repository();
    let linked = scratch.path("linked");
    scratch.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let one = at(&scratch, &linked, &["init", "--yes", "--json"]).ok().json();
    assert!(linked.join("baton.toml").exists());
    assert!(!scratch.root().join("baton.toml").exists());
    let two = scratch.baton(&["session", "list"]).ok();
    assert_eq!(two.out, "no sessions\n", "the main tree is in the workspace too");
    std::fs::copy(linked.join("baton.toml"), scratch.root().join("baton.toml")).unwrap();
    let three = scratch.baton(&["init", "--json"]).ok().json();
    assert_eq!(one["workspace"], three["workspace"]);
    assert_ne!(one["tree"], three["tree"]);
    assert_eq!(three["made"], false);
}

#[test]
fn a_bare_clone_is_refused_and_its_worktree_is_not() {
    let scratch = Scratch::repository();
    let bare = scratch.path("bare.git");
    scratch.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let said = at(&scratch, &bare, &["init", "--yes"]).refused(1);
    assert!(said.err.contains("bare repository"), "{said:?}");
    let tree = scratch.path("tree");
    let mut git = Command::new("git");
    scratch.clean(&mut git);
    let made = git.current_dir(&bare).args(["worktree", "add", "-q"]).arg(&tree).status().unwrap();
    assert!(made.success());
    at(&scratch, &tree, &["init", "--yes"]).ok();
    assert!(bare.join("baton/workspace.toml").exists());
    at(&scratch, &bare, &["init", "--yes"]).refused(1);
}

#[test]
fn a_submodule_of_a_workspace_is_refused() {
    let scratch = Scratch::workspace();
    let inner = scratch.root().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let mut git = Command::new("git");
    scratch.clean(&mut git);
    assert!(git.current_dir(&inner).args(["init", "-q"]).status().unwrap().success());
    let said = at(&scratch, &inner, &["init", "--yes"]).refused(1);
    assert!(said.err.contains("guards its files already"), "{said:?}");
    assert!(!inner.join("baton.toml").exists() && !inner.join(".git/baton").exists());
    let origin = scratch.path("origin");
    scratch.git(&["clone", "-q", ".", origin.to_str().unwrap()]);
    let allow = "protocol.file.allow=always";
    let origin = origin.to_str().unwrap();
    scratch.git(&["-c", allow, "submodule", "--quiet", "add", origin, "module"]);
    let said = at(&scratch, &scratch.root().join("module"), &["init", "--yes"]).refused(1);
    assert!(said.err.contains("this is a submodule in the workspace"), "{said:?}");
}

#[test]
fn a_plain_folder_keeps_its_store_out_of_a_later_repository() {
    let scratch = Scratch::repository();
    let plain = scratch.path("plain");
    std::fs::create_dir_all(plain.join("deep/er")).unwrap();
    std::fs::write(plain.join("go.sum"), "").unwrap();
    let made = at(&scratch, &plain, &["init", "--yes", "--json"]).ok().json();
    assert!(made["zones"].to_string().contains("go.sum"), "{made}");
    assert_eq!(std::fs::read_to_string(plain.join(".baton/.gitignore")).unwrap(), "*\n");
    let again = at(&scratch, &plain.join("deep/er"), &["init", "--json"]).ok().json();
    assert_eq!(made["workspace"], again["workspace"], "a folder below is the same workspace");
    assert!(!plain.join("deep/er/.baton").exists());
    let other = scratch.path("other");
    std::fs::create_dir(&other).unwrap();
    let told = at(&scratch, &other, &["init", "--yes", "--agents", "none"]).ok().out;
    assert!(told.contains("trees, commits and landings need git"), "{told}");
}

#[test]
fn the_home_folder_is_no_workspace() {
    let scratch = Scratch::repository();
    let home = scratch.path("home");
    let said = at(&scratch, &home, &["init", "--yes"]).refused(1);
    assert!(said.err.contains("every repository"), "{said:?}");
    assert!(!home.join(".baton").exists());
    at(&scratch, scratch.folder.path(), &["init", "--yes"]).refused(1);
}

#[test]
fn a_client_that_nobody_knows_is_a_mistake() {
    let scratch = Scratch::repository();
    for agents in ["nonsense", "claude,nonsense", "", "claude,,codex", "none,claude"] {
        let said = scratch.baton(&["init", "--yes", "--agents", agents]).refused(2);
        assert!(said.err.contains("claude, codex, gemini, cursor, opencode, aider"), "{said:?}");
    }
    assert!(!scratch.store().exists());
}

#[test]
fn an_agent_may_begin() {
    let scratch = rich();
    let said = scratch.command(&["init", "--yes", "--json"]).env("CLAUDECODE", "1").output();
    assert_eq!(Said::from(said.unwrap()).ok().json()["policy"], "in_force");
}

#[test]
fn joining_needs_a_shared_store_and_an_id() {
    let scratch = Scratch::repository();
    let id = "0123456789abcdef0123456789abcdef";
    let said = scratch.baton(&["init", "--yes", "--join", id]).refused(2);
    assert!(said.err.contains("BATON_STORE"), "{said:?}");
    scratch.baton(&["init", "--yes", "--join", "mine"]).refused(2);
    assert!(!scratch.store().exists());
}

#[test]
fn lesson_26_a_workspace_has_one_store() {
    let scratch = Scratch::workspace();
    let mut elsewhere = scratch.command(&["claims"]);
    elsewhere.env("BATON_STORE", "postgres://nobody@127.0.0.1:1/none");
    let said = Said::from(elsewhere.output().unwrap()).refused(4);
    assert!(said.err.contains("has its own store"), "{said:?}");
    // The user's general choice is for new workspaces.
    let settings = scratch.path("home/.config/baton");
    std::fs::create_dir_all(&settings).unwrap();
    let text = "store = \"postgres://nobody@127.0.0.1:1/none\"\n";
    std::fs::write(settings.join("config.toml"), text).unwrap();
    scratch.baton(&["claims"]).ok();
    scratch.baton(&["init"]).ok();
    let fresh = Scratch::repository();
    let mut init = fresh.command(&["init", "--yes"]);
    init.env("XDG_CONFIG_HOME", scratch.path("home/.config"));
    let said = Said::from(init.output().unwrap()).refused(4);
    assert!(said.err.contains("PostgreSQL cannot be reached"), "{said:?}");
    assert!(!fresh.store().join("store.db").exists(), "no fallback");
    std::fs::write(settings.join("config.toml"), "stroe = \"x\"\n").unwrap();
    let mut init = fresh.command(&["init", "--yes"]);
    init.env("XDG_CONFIG_HOME", scratch.path("home/.config"));
    let said = Said::from(init.output().unwrap()).refused(2);
    assert!(said.err.contains("config.toml:1: unknown field"), "{said:?}");
}

#[test]
fn where_locks_cannot_be_trusted_nothing_is_left_behind() {
    let scratch = rich();
    let mut init = scratch.command(&["init", "--yes"]);
    let said = Said::from(init.env("BATON_TEST_FILESYSTEM", "nfs").output().unwrap()).refused(4);
    assert!(said.err.contains("nfs") && said.err.contains("next: set BATON_STORE"), "{said:?}");
    assert!(!scratch.store().join("workspace.toml").exists());
    assert!(!scratch.root().join("baton.toml").exists());
}

#[test]
fn a_bad_address_is_told_without_its_password() {
    let scratch = Scratch::repository();
    for address in ["mysql://me:geheim@host/db", "nonsense", "postgres://me:geheim@127.0.0.1:1/db"]
    {
        let mut init = scratch.command(&["init", "--yes"]);
        let said = Said::from(init.env("BATON_STORE", address).output().unwrap());
        assert!([2, 4].contains(&said.code), "{said:?}");
        let code = said.code;
        let said = said.refused(code);
        assert!(!said.err.contains("geheim"), "{said:?}");
    }
    assert!(!scratch.store().exists());
}

#[test]
fn s12_a_retry_of_init_gets_the_first_answer() {
    let scratch = Scratch::repository();
    let words = ["init", "--yes", "--op-id", "0190-init", "--json"];
    let first = scratch.baton(&words).ok();
    assert_eq!(first.json()["made"], true);
    let again = scratch.baton(&words).ok();
    assert_eq!(again.out, first.out, "the first answer, also where a new one would differ");
    let entries = scratch.baton(&["journal"]).ok().out.lines().count();
    scratch.baton(&words).ok();
    assert_eq!(scratch.baton(&["journal"]).ok().out.lines().count(), entries);
    let other = ["init", "--yes", "--new", "--op-id", "0190-init"];
    let taken = scratch.baton(&other).refused(1);
    assert!(taken.err.contains("for another request"), "{taken:?}");
    scratch.baton(&["init", "--yes", "--op-id", "two"]).ok();
    scratch.baton(&["init", "--yes", "--op-id", ""]).refused(2);
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn a_workspace_from_before_git_is_not_forgotten() {
    let scratch = Scratch::repository();
    let plain = scratch.path("plain");
    std::fs::create_dir_all(&plain).unwrap();
    let made = at(&scratch, &plain, &["init", "--yes", "--agents", "none", "--json"]).ok().json();
    at(&scratch, &plain, &["task", "add", "Carry the water"]).ok();
    let mut git = Command::new("git");
    scratch.clean(&mut git);
    assert!(git.current_dir(&plain).args(["init", "-q"]).status().unwrap().success());
    let said = at(&scratch, &plain, &["init", "--yes"]).refused(1);
    assert!(said.err.contains("from before it was a repository"), "{said:?}");
    assert!(!plain.join(".git/baton").exists(), "no second one");
    // What is said to be done helps.
    let line = said.err.split("then: ").nth(1).unwrap().split("&& baton").next().unwrap();
    let line = line.trim_end().trim_end_matches("&&");
    let done = Command::new("sh").arg("-c").arg(line).status().unwrap();
    assert!(done.success(), "{line}");
    let again = at(&scratch, &plain, &["init", "--yes", "--agents", "none", "--json"]).ok().json();
    assert_eq!(again["workspace"], made["workspace"]);
    let tasks = at(&scratch, &plain, &["task", "list"]).ok();
    assert!(tasks.out.contains("Carry the water"), "{tasks:?}");
    assert!(!plain.join(".baton/.gitignore").exists());
}

#[test]
fn what_baton_keeps_for_itself_and_cannot_read_is_moved_away() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    for (name, words) in [("wiring.json", "keeps what it wired"), ("workspace.toml", "line 1")] {
        let file = scratch.store().join(name);
        std::fs::write(&file, "rubbish").unwrap();
        let said = scratch.baton(&["init", "--yes"]).refused(4);
        assert!(said.err.contains(words), "{said:?}");
        let next = said.err.split("next: ").nth(1).unwrap().split(", then").next().unwrap();
        assert!(next.starts_with("mv "), "{next}");
        let done = Command::new("sh").arg("-c").arg(next).status().unwrap();
        assert!(done.success(), "{next}");
        scratch.baton(&["init", "--yes"]).ok();
        scratch.baton(&["status"]).ok();
    }
}

#[test]
fn a_plugins_files_that_somebody_changed_stay() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--plugin", "../plugin"]).ok();
    let skill = scratch.path("plugin/skills/baton/SKILL.md");
    let text = std::fs::read_to_string(&skill).unwrap();
    std::fs::write(&skill, format!("{text}mine\n")).unwrap();
    let said = scratch.baton(&["init", "--plugin", "../plugin"]).ok();
    assert!(said.out.contains("kept skills/baton/SKILL.md"), "{said:?}");
    assert!(std::fs::read_to_string(&skill).unwrap().ends_with("mine\n"));
    std::fs::write(&skill, text).unwrap();
    let said = scratch.baton(&["init", "--plugin", "../plugin"]).ok();
    assert!(!said.out.contains("kept"), "{said:?}");
}

#[test]
fn a_line_with_words_of_the_users_own_stays() {
    for line in ["./log.sh; baton hook claude", "BATON_STORE=x exec baton hook claude"] {
        let scratch = Scratch::repository();
        let file = ".claude/settings.json";
        let hook = format!(r#"[{{"hooks":[{{"type":"command","command":"{line}"}}]}}]"#);
        let own = format!("{{\"hooks\":{{\"PreToolUse\":{hook}}}}}\n");
        scratch.write(file, &own);
        let read = || std::fs::read_to_string(scratch.root().join(file)).unwrap();
        scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
        let with = read();
        assert!(
            with.contains(line) && with.contains("|| exit 0; exec baton hook claude"),
            "{with}"
        );
        scratch.baton(&["doctor"]).ok();
        scratch.baton(&["init", "--remove", "--yes"]).ok();
        assert_eq!(read(), own);
    }
}

#[test]
fn a_comment_on_our_table_stays_when_the_table_goes() {
    let file = ".codex/config.toml";
    let table = "[mcp_servers.baton]";
    for (before, added) in [
        (None, "# mine: starts slowly"),
        (Some("model = \"gpt\"\n"), "# mine: starts slowly"),
        (Some("# of all\n[tui]\na = 1\n"), "# one\n\n# two"),
    ] {
        let scratch = Scratch::repository();
        if let Some(before) = before {
            scratch.write(file, before);
        }
        let read = || std::fs::read_to_string(scratch.root().join(file)).unwrap();
        scratch.baton(&["init", "--yes", "--agents", "codex"]).ok();
        let with = read();
        assert!(with.contains(table), "{with}");
        scratch.write(file, &with.replace(table, &format!("{added}\n{table}")));
        scratch.baton(&["init", "--remove", "--yes"]).ok();
        let left = read();
        assert!(left.starts_with(before.unwrap_or_default()), "{left}");
        assert!(left.ends_with(&format!("{added}\n")) && !left.contains("baton"), "{left}");
    }
}
