//! The generated reference is what the code says.

use crate::harness::{Scratch, project};

#[test]
fn the_reference_is_up_to_date() {
    let scratch = Scratch::repository();
    for (page, options) in [
        ("commands.md", &[][..]),
        ("replies.json", &["--schemas"]),
        ("messages.json", &["--messages"]),
    ] {
        let said = scratch.baton(&[&["reference"], options].concat()).ok();
        let kept = std::fs::read_to_string(project().join("docs/reference").join(page)).unwrap();
        assert!(said.out == kept, "docs/reference/{page} is old: run cargo xtask reference");
    }
}

#[test]
fn every_command_has_help_that_fits_a_screen_width() {
    let scratch = Scratch::repository();
    let help = scratch.baton(&["--help"]).ok();
    for line in help.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let everyday = help.out.lines().skip_while(|line| *line != "Every day:").skip(1);
    let verbs: Vec<&str> = everyday
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let wanted = ["init", "start", "status", "claim", "task", "handoff", "land", "doctor"];
    assert_eq!(verbs, wanted, "{}", help.out);
}
