//! `status`: one screen, what waits for a person on top.

use crate::harness::Scratch;

/// Times differ from run to run; everything else must not.
fn without_times(text: &str) -> String {
    let number = |word: &str| word.chars().next().is_some_and(|first| first.is_ascii_digit());
    let line = |line: &str| {
        let words = line.split(' ').map(|word| match number(word) && word.ends_with(['s', 'm']) {
            true => "TIME",
            false => word,
        });
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    let mut lines: Vec<String> = text.lines().map(line).collect();
    let last = lines.len() - 1;
    let store = lines[last].split(", ").next().unwrap_or_default();
    lines[last] = store.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
    lines[0] = lines[0].split(": ").nth(1).unwrap_or_default().to_owned();
    lines.join("\n")
}

#[test]
fn one_screen_tells_it_all() {
    let scratch = Scratch::workspace();
    scratch.git(&["add", "-A"]);
    let alice = scratch.session("alice");
    let (bob, mut process) = scratch.session_with_process("bob");
    let carol = scratch.session("carol");
    scratch.acts(&alice, &["claim", "src/a.rs", "--reason", "refactor\u{1b}[2J"]).ok();
    scratch.acts(&bob, &["claim", "README.md", "--shared"]).ok();
    let mut waiting = scratch.begins(&carol, &["claim", "src/a.rs", "--wait", "60s"]);
    scratch.until_waiting(1);
    process.end();
    let policy = scratch.root().join("baton.toml");
    let text = std::fs::read_to_string(&policy).unwrap_or_default();
    std::fs::write(&policy, format!("{text}\n[[zone]]\npaths = [\"vendor/\"]\npolicy = \"off\"\n"))
        .unwrap();
    let said = scratch.baton(&["status"]).ok();
    insta::assert_snapshot!(without_times(&said.out), @r"
    3 sessions, 2 claims, 1 waiting

    Waits for a person
      baton.toml was changed and is not in force: baton policy show
      bob is gone and holds 1 claim until somebody asks

    Sessions
      NAME   CLIENT  STATE  CLAIMS  LAST ACT   ROLE
      alice  -       live   1       within TIME
      bob    -       gone   1       within TIME
      carol  -       live   0       within TIME

    Claims
      WHAT                WHO    ENDS                WHY
      src/a.rs            alice  in TIME              refactor\u{1b}[2J
      README.md (shared)  bob    gone: free to take

    Queue
      WHO    WAITS FOR  BEHIND  SINCE
      carol  src/a.rs   alice   TIME ago

     entries
    ");
    let said = scratch.baton(&["status", "--json"]).ok().json();
    let matters: Vec<&str> =
        said["matters"].as_array().unwrap().iter().map(|m| m["matter"].as_str().unwrap()).collect();
    assert_eq!(matters, ["policy_changed", "holder_dead"]);
    assert_eq!(said["queue"][0]["behind"][0]["name"], "alice");
    let _ = waiting.kill();
    let _ = waiting.wait();
}

#[test]
fn what_a_late_holder_left_uncommitted_waits_for_a_person() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs", "--ttl", "1m"]).ok();
    scratch.write("src/a.rs", "changed\n");
    let quiet = scratch.baton(&["status"]).ok();
    assert!(quiet.out.contains("Nothing waits for a person."), "{quiet:?}");
    let late = scratch.acts_later("", 120_000, &["status"]);
    assert!(late.out.contains("alice left changes in src/a.rs and its time ran out"), "{late:?}");
    let references = scratch.git(&["for-each-ref", "refs/baton"]);
    assert_eq!(references, "", "looking saves nothing");
}

#[test]
fn a_broken_policy_file_is_told_and_stops_nothing() {
    let scratch = Scratch::workspace();
    scratch.write("baton.toml", "[[zone]\n");
    let said = scratch.baton(&["status"]).ok();
    assert!(said.out.contains("baton.toml cannot be used: line 1"), "{said:?}");
}

#[test]
fn watching_needs_a_terminal() {
    let scratch = Scratch::workspace();
    scratch.baton(&["status", "--watch"]).refused(2);
    scratch.baton(&["status", "--bogus"]).refused(2);
}
