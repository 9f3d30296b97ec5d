//! Subagents through the binary: named to their siblings, never in their session's way.

use crate::harness::{Said, Scratch};

fn acts_as(scratch: &Scratch, credential: &str, agent: &str, words: &[&str]) -> Said {
    let mut command = scratch.command(words);
    command.env("BATON_SESSION", credential).env("BATON_AGENT", agent);
    command.output().unwrap().into()
}

#[test]
fn siblings_keep_out_of_each_others_files_and_their_session_goes_on() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.acts(&ann, &["claim", "src/a.rs", "--tree", "--agent", "one"]).ok();
    let denied = acts_as(&scratch, &ann, "two", &["check", "src/a.rs"]);
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.out.contains("is held by ann (subagent one) until"), "{denied:?}");
    let refused = acts_as(&scratch, &ann, "two", &["claim", "src/a.rs", "--json"]);
    let holder = &refused.json()["refused"]["holder"];
    assert_eq!((&holder["name"], &holder["agent"]), (&"ann".into(), &"one".into()), "{refused:?}");
    scratch.acts(&ann, &["check", "src/a.rs"]).ok();
    scratch.acts(&ann, &["claim", "src/a.rs", "--tree"]).ok();
    for (verb, shown) in [("claims", "ann (subagent one)"), ("why", "for its subagent one")] {
        let words: &[&str] = if verb == "why" { &["why", "src/a.rs"] } else { &["claims"] };
        let said = scratch.baton(words).ok();
        assert!(said.out.contains(shown), "{verb}: {said:?}");
    }
    // A subagent lets go of its own, and of nothing else.
    acts_as(&scratch, &ann, "two", &["release", "src/a.rs"]).refused(1);
    acts_as(&scratch, &ann, "one", &["claim", "README.md"]).ok();
    let passed = scratch.acts(&ann, &["session", "agent-stop", "one"]).ok();
    assert!(passed.out.contains("its session holds src/a.rs, README.md now"), "{passed:?}");
    acts_as(&scratch, &ann, "two", &["claim", "README.md"]).ok();
    scratch.acts(&bob, &["claim", "src/a.rs"]).refused(1);
    let again = scratch.acts(&ann, &["session", "agent-stop", "one"]).ok();
    assert!(again.out.contains("it held nothing"), "{again:?}");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn ids_of_subagents_are_judged_as_all_text() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    acts_as(&scratch, &ann, "\u{1b}[31mred", &["claim", "x"]).refused(2);
    scratch.acts(&ann, &["claim", "x", "--agent", &"x".repeat(65)]).refused(2);
    scratch.acts(&ann, &["session", "agent-stop", "\u{202e}x"]).refused(2);
    scratch.baton(&["session", "agent-stop", "one"]).refused(1);
}
