//! The message of a commit: what was said, and the trailers that say who and for what.
//!
//! Owns the place of the trailers: in the last paragraph when that consists of trailers already,
//! else in a paragraph of their own, so that `git interpret-trailers` finds them all.

use super::Permit;

/// The message with `Baton-Session`, `Baton-Task` and `Baton-Token`, and with whoever stands beside
/// the author.
pub fn with_trailers(message: &str, permit: &Permit, beside: Option<&str>) -> String {
    let mut text = tidied(message);
    if text.is_empty() {
        return text;
    }
    let paragraphs = text.trim_end().split("\n\n");
    let (count, last) = paragraphs.fold((0_usize, ""), |(count, _), last| (count + 1, last));
    if count < 2 || !last.lines().all(is_trailer) {
        text.push('\n');
    }
    let task = permit.task.as_ref().map(|task| ("Baton-Task", task.0.clone()));
    let token = permit.token.map(|token| ("Baton-Token", token.to_string()));
    let session = ("Baton-Session", permit.holder.session.0.clone());
    let beside = beside.map(|name| ("Co-authored-by", name.to_owned()));
    let beside = beside.filter(|(name, value)| !text.contains(&format!("\n{name}: {value}\n")));
    for (name, value) in [beside, Some(session), task, token].into_iter().flatten() {
        text.push_str(&format!("{name}: {value}\n"));
    }
    text
}

/// As git tidies a message that was given in words: no blanks at the ends of lines, one empty line
/// between paragraphs, none around, one line feed at the end.
pub fn tidied(message: &str) -> String {
    let mut text = String::with_capacity(message.len() + 1);
    let mut gap = false;
    for line in message.lines().map(str::trim_end) {
        if line.is_empty() {
            gap = !text.is_empty();
            continue;
        }
        if std::mem::take(&mut gap) {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn is_trailer(line: &str) -> bool {
    let word = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    line.split_once(": ").is_some_and(|(name, value)| word(name) && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Holder;
    use crate::id::{SessionId, TaskId, Token};

    #[test]
    fn trailers_stand_in_one_last_paragraph() {
        let holder = Holder { session: SessionId("s1".into()), name: "otter".into(), agent: None };
        let token = Some(Token { epoch: 1, number: 7 });
        let permit = Permit { holder, task: Some(TaskId("t4".into())), token, foreign: vec![] };
        let own = "Baton-Session: s1\nBaton-Task: t4\nBaton-Token: 1.7\n";
        for (message, whole) in [
            ("one", format!("one\n\n{own}")),
            ("fix: one", format!("fix: one\n\n{own}")),
            ("one\n\ntwo: not a trailer\nx", format!("one\n\ntwo: not a trailer\nx\n\n{own}")),
            ("\n\none  \n\n\n\nAcked-by: x\n\n", format!("one\n\nAcked-by: x\n{own}")),
            (" \n\n", String::new()),
        ] {
            assert_eq!(with_trailers(message, &permit, None), whole, "{message:?}");
        }
        let two = "Co-authored-by: Ann <a@b>\n";
        let whole = format!("one\n\n{two}{own}");
        assert_eq!(with_trailers("one", &permit, Some("Ann <a@b>")), whole);
        let said = format!("one\n\n{two}");
        assert_eq!(with_trailers(&said, &permit, Some("Ann <a@b>")), whole, "not twice");
    }
}
