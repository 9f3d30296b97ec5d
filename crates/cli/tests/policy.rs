//! Which policy is in force, and who may change it.

use crate::harness::{Said, Scratch};

const STRICT: &str = "[[zone]]\npaths = [\"src/\"]\npolicy = \"require\"\n";
const LOOSE: &str = "[[zone]]\npaths = [\"src/\"]\npolicy = \"off\"\n";

fn as_agent(scratch: &Scratch, words: &[&str]) -> Said {
    scratch.command(words).env("CLAUDECODE", "1").output().unwrap().into()
}

fn in_force(scratch: &Scratch) -> String {
    let shown = scratch.baton(&["policy", "show", "--json"]).ok().json();
    shown["zones"][0]["policy"].as_str().unwrap().to_owned()
}

#[test]
fn an_agent_cannot_loosen_the_rules_it_works_under() {
    let scratch = Scratch::with_policy(STRICT);
    let session = scratch.session("ann");
    scratch.write("baton.toml", LOOSE);
    for words in [&["policy", "approve", "--yes"][..], &["init", "--yes"]] {
        let said = as_agent(&scratch, words).refused(1);
        assert!(said.err.contains("for a person to decide"), "{said:?}");
        scratch.acts(&session, words).refused(1);
        scratch.baton(&[&["--session", &session], words].concat()).refused(1);
        scratch.acts("nobody.secret", words).refused(1);
        assert_eq!(in_force(&scratch), "require");
    }
    let document = as_agent(&scratch, &["init", "--yes", "--json"]);
    assert_eq!(document.code, 1);
    let document = document.json();
    assert_eq!(document["policy"], "needs_person");
    assert_eq!(document["refused"]["code"], "needs_person");
    let refused = as_agent(&scratch, &["policy", "approve", "--yes", "--json"]).json();
    assert_eq!(refused["refused"]["code"], "needs_person");
}

#[test]
fn a_script_of_a_person_must_say_yes() {
    let scratch = Scratch::with_policy(STRICT);
    scratch.write("baton.toml", LOOSE);
    scratch.baton(&["policy", "approve"]).refused(1);
    scratch.baton(&["init"]).refused(1);
    assert_eq!(in_force(&scratch), "require");
    let said = scratch.baton(&["policy", "approve", "--yes", "--json"]).ok().json();
    assert_eq!(said["policy"], "in_force");
    assert_eq!(said["difference"]["added"][0]["policy"], "off");
    assert_eq!(in_force(&scratch), "off");
    scratch.write("baton.toml", STRICT);
    // Its "yes" is for what it proposes itself; of this nobody has seen what it changes.
    let said = scratch.baton(&["init", "--yes"]).refused(1);
    assert!(said.err.contains("the old policy stays"), "{said:?}");
    assert!(said.err.contains("next: baton policy show"), "{said:?}");
    assert_eq!(in_force(&scratch), "off");
    scratch.baton(&["policy", "approve", "--yes"]).ok();
    assert_eq!(in_force(&scratch), "require");
    // Nor does a proposal take its place where the file is missing.
    let file = scratch.root().join("baton.toml");
    std::fs::remove_file(&file).unwrap();
    let said = scratch.baton(&["init", "--yes"]).ok();
    assert!(said.out.contains("kept  the policy in force"), "{said:?}");
    assert!(!file.exists());
    assert_eq!(in_force(&scratch), "require");
}

#[test]
fn s12_a_retry_gets_the_first_answer() {
    let scratch = Scratch::with_policy(STRICT);
    scratch.write("baton.toml", LOOSE);
    let approve = ["policy", "approve", "--yes", "--json", "--op-id", "one"];
    let first = scratch.baton(&approve).ok().json();
    assert_eq!(first["policy"], "in_force");
    assert_eq!(first, scratch.baton(&approve).ok().json());
    scratch.write("baton.toml", STRICT);
    scratch.baton(&approve).refused(1);
    let file = scratch.path("home/token");
    let token = ["person", "token", file.to_str().unwrap(), "--op-id", "two"];
    let first = scratch.baton(&token).ok();
    let secret = std::fs::read(&file).unwrap();
    assert_eq!(first.out, scratch.baton(&token).ok().out);
    assert_eq!(secret, std::fs::read(&file).unwrap());
    std::fs::write(&file, "mine").unwrap();
    scratch.baton(&token).refused(1);
}

#[test]
fn a_person_sees_the_difference_and_is_asked() {
    let scratch = Scratch::with_policy(STRICT);
    scratch.write("baton.toml", LOOSE);
    let Some(no) = scratch.person(&["policy", "approve"], "n\n") else { return };
    assert_eq!(no.code, 1, "{no:?}");
    assert!(no.out.contains("- require  src/") && no.out.contains("+ off      src/"), "{no:?}");
    assert_eq!(in_force(&scratch), "require");
    let yes = scratch.person(&["policy", "approve"], "y\n").unwrap();
    assert_eq!(yes.code, 0, "{yes:?}");
    assert_eq!(in_force(&scratch), "off");
}

#[test]
fn other_words_for_the_same_rules_need_nobody() {
    let scratch = Scratch::with_policy(STRICT);
    scratch.write("baton.toml", &format!("# why\n{STRICT}"));
    let session = scratch.session("ann");
    assert_eq!(scratch.acts(&session, &["claim", "src/"]).ok().err, "");
    let said = as_agent(&scratch, &["init", "--json"]).ok().json();
    assert_eq!(said["policy"], "unchanged");
}

#[test]
fn show_tells_what_is_in_force_and_what_would_change() {
    let scratch = Scratch::with_policy(&format!("{STRICT}[resource.\"@gpu\"]\ncapacity = 2\n"));
    scratch.write("baton.toml", LOOSE);
    let said = scratch.baton(&["policy", "show"]).ok().out;
    let said = said.replace(|c: char| c.is_ascii_digit(), "N");
    insta::assert_snapshot!(said, @r#"
    in force, approved Ns ago; the last match wins:
    POLICY   PATHS
    require  src/
    @gpu: N in all
    baton.toml here differs:
      - require  src/
      + off      src/
      @gpu: N becomes one holder
    next: baton policy approve, by a person
    "#);
}

/// What agents call at every edit tells people only; agents learn it from `status`.
#[test]
fn a_person_who_works_is_told_of_a_file_that_differs() {
    let scratch = Scratch::with_policy(STRICT);
    let session = scratch.session("ann");
    scratch.write("baton.toml", LOOSE);
    for words in [&["check", "README.md"][..], &["claim", "README.md"]] {
        assert_eq!(scratch.acts(&session, words).ok().err, "");
    }
    let Some(said) = scratch.on_terminal(&["check", "README.md"], "") else { return };
    assert!(said.out.contains("differs from the policy in force"), "{said:?}");
    let told = || scratch.on_terminal(&["check", "README.md"], "").unwrap().out;
    scratch.write("baton.toml", "nonsense");
    assert!(told().contains("cannot be used"));
    std::fs::remove_file(scratch.root().join("baton.toml")).unwrap();
    assert!(told().contains("missing"));
    scratch.write("baton.toml", STRICT);
    assert!(!told().contains("baton.toml"));
}

#[test]
fn a_bad_file_changes_nothing_that_is_in_force() {
    let scratch = Scratch::with_policy(STRICT);
    scratch.write("baton.toml", "[[zone]]\npaths = [\"src/\"]\npolicy = \"of\"\n");
    let said = scratch.baton(&["policy", "approve", "--yes"]).refused(2);
    assert!(said.err.contains("baton.toml:3: there is no policy `of`"), "{said:?}");
    scratch.baton(&["init", "--yes"]).refused(2);
    assert_eq!(in_force(&scratch), "require");
    let shown = scratch.baton(&["policy", "show"]).ok();
    assert!(shown.out.contains("cannot be used: baton.toml:3:"), "{shown:?}");
}
