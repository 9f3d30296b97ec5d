//! Text of ours in a user's file, and whole files of ours: put in, known again, taken out.
//!
//! Owns the managed block between two marks and the stamp, a hash over our own text: by it we know
//! text of an older Baton, which may be replaced, from text that a user has changed, which stays.
//! Knows nothing of files. Line ends of the user's file are kept, and ours follow them.

use super::Broken;

const STAMP: &str = "baton:";
const STAMP_CHARS: usize = 12;
/// Where front matter begins, no comment can come first.
const FRONT: &str = "---\n";
/// Nor where the kernel is told who reads the file.
const SHEBANG: &str = "#!/bin/sh\n";

/// The marks around a block, as comments of the file's own kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    begin: &'static str,
    end: &'static str,
    open: &'static str,
    close: &'static str,
}

pub(super) const MARKDOWN: Marks = Marks {
    begin: "<!-- baton:begin -->",
    end: "<!-- baton:end -->",
    open: "<!-- ",
    close: " -->",
};

pub(super) const HASHES: Marks =
    Marks { begin: "# baton:begin", end: "# baton:end", open: "# ", close: "" };

pub(super) const SLASHES: Marks =
    Marks { begin: "// baton:begin", end: "// baton:end", open: "// ", close: "" };

fn hash(body: &str) -> String {
    let plain = body.replace("\r\n", "\n");
    blake3::hash(plain.as_bytes()).to_hex().chars().take(STAMP_CHARS).collect()
}

/// `say` tells people what this is; the hash tells us whether anybody changed what follows.
fn stamped(marks: Marks, say: &str, body: &str) -> String {
    format!("{}{say} {STAMP}{}{}\n{body}", marks.open, hash(body), marks.close)
}

fn without_lead(text: &str) -> &str {
    [FRONT, SHEBANG].iter().find_map(|lead| text.strip_prefix(lead)).unwrap_or(text)
}

/// Whether a stamped text is as some Baton wrote it; nothing if it bears no stamp.
fn is_untouched(text: &str) -> Option<bool> {
    let (first, body) = without_lead(text).split_once('\n')?;
    let (_, stamp) = first.rsplit_once(STAMP)?;
    let stamp: String = stamp.chars().take(STAMP_CHARS).collect();
    Some(stamp == hash(body))
}

/// What came of putting text in or taking it out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Text(String),
    /// The user changed what we wrote, so it stays as it is.
    Theirs,
}

const BLOCK_SAYS: &str = "written by baton init, which also updates it; yours is what is around it";
/// What every file of ours says of itself, near its beginning.
const MARK: &str = "written by baton init";
const MARK_LINES_MAX: usize = 3;
const FILE_SAYS: &str = "written by baton init, which updates it unless you change it";

/// A whole file of ours.
pub(super) fn file(marks: Marks, body: &str) -> String {
    stamped(marks, FILE_SAYS, body)
}

/// A whole file of ours that begins with front matter; `body` is what follows its first line.
pub(super) fn with_front_matter(marks: Marks, body: &str) -> String {
    format!("{FRONT}{}", stamped(marks, FILE_SAYS, body))
}

/// A whole file of ours that a shell runs.
pub(super) fn shell_script(body: &str) -> String {
    format!("{SHEBANG}{}", stamped(HASHES, FILE_SAYS, body))
}

/// Whether some Baton wrote this file once, whatever became of it.
pub(super) fn has_mark(there: &str) -> bool {
    there
        .lines()
        .take(MARK_LINES_MAX)
        .any(|line| line.replace('`', "").to_lowercase().contains(MARK))
}

/// The file as it should be, where there is one already.
pub(super) fn put_file(there: &str, ours: &str) -> Result<Outcome, Broken> {
    match is_untouched(there) {
        _ if there.trim().is_empty() => Ok(Outcome::Text(ours.to_owned())),
        Some(true) => Ok(Outcome::Text(ours.to_owned())),
        Some(false) => Ok(Outcome::Theirs),
        None => Err(Broken("there is another file of this name".to_owned())),
    }
}

/// Whether a file that is there is only ours.
pub(super) fn is_our_file(there: &str) -> bool {
    is_untouched(there) == Some(true)
}

/// A block's place in a text: its whole lines, and what is between the marks.
struct Found {
    start: usize,
    end: usize,
    inner: String,
}

fn find(text: &str, marks: Marks) -> Result<Option<Found>, Broken> {
    let (mut offset, mut begin, mut found) = (0, None, None);
    for line in text.split_inclusive('\n') {
        let next = offset + line.len();
        match line.trim() {
            mark if mark == marks.begin && begin.is_some() => {
                return Err(Broken(format!("`{}` stands in it twice", marks.begin)));
            }
            mark if mark == marks.begin => begin = Some((offset, next)),
            mark if mark == marks.end && found.is_none() => {
                let Some((start, body)) = begin else {
                    return Err(Broken(format!("`{}` has no beginning", marks.end)));
                };
                found = Some(Found { start, end: next, inner: text[body..offset].to_owned() });
            }
            _ => {}
        }
        offset = next;
    }
    match (begin, found) {
        (Some(_), None) => Err(Broken(format!("`{}` has no end", marks.begin))),
        (_, found) => Ok(found),
    }
}

/// The text with our block in it, at its end where it is new.
pub(super) fn put_block(text: &str, marks: Marks, body: &str) -> Result<Outcome, Broken> {
    let inner = stamped(marks, BLOCK_SAYS, body);
    let block = |newline: &str, last: &str| {
        let lines = format!("{}\n{inner}{}", marks.begin, marks.end);
        format!("{}{last}", lines.replace('\n', newline))
    };
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let Some(found) = find(text, marks)? else {
        let (gap, last) = match text {
            "" => ("".to_owned(), newline),
            text if text.ends_with('\n') => (newline.to_owned(), newline),
            _ => (newline.repeat(2), ""),
        };
        return Ok(Outcome::Text(format!("{text}{gap}{}", block(newline, last))));
    };
    if found.inner.replace("\r\n", "\n") == inner {
        return Ok(Outcome::Text(text.to_owned()));
    }
    if is_untouched(&found.inner) != Some(true) {
        return Ok(Outcome::Theirs);
    }
    let last = if text[found.start..found.end].ends_with('\n') { newline } else { "" };
    let (before, after) = (&text[..found.start], &text[found.end..]);
    Ok(Outcome::Text(format!("{before}{}{after}", block(newline, last))))
}

/// The text without our block; nothing if nothing else is in it. Lines that the user wrote between
/// the marks stay.
pub(super) fn take_block(text: &str, marks: Marks, body: &str) -> Result<Option<String>, Broken> {
    let Some(found) = find(text, marks)? else { return Ok(Some(text.to_owned())) };
    let ours = |line: &str| {
        let line = line.trim_end();
        line.contains(STAMP) || body.lines().any(|known| known == line)
    };
    let theirs: String = match is_untouched(&found.inner) {
        Some(true) => String::new(),
        _ => found.inner.split_inclusive('\n').filter(|line| !ours(line)).collect(),
    };
    let (before, after) = (&text[..found.start], &text[found.end..]);
    let last = !text[found.start..found.end].ends_with('\n');
    let before = match theirs.is_empty() {
        false => before,
        // The empty line that we put before it, and the line end that the file did not have.
        true if last => cut(cut(before)),
        true => cut(before),
    };
    let left = format!("{before}{theirs}{after}");
    Ok((!left.trim().is_empty()).then_some(left))
}

fn cut(text: &str) -> &str {
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(text: &str, body: &str) -> String {
        match put_block(text, MARKDOWN, body).unwrap() {
            Outcome::Text(text) => text,
            Outcome::Theirs => panic!("theirs: {text}"),
        }
    }

    #[test]
    fn a_block_goes_in_once_and_comes_out_again() {
        for text in ["# A\n", "# A", "# A\n\n", "a\r\nb\r\n", "a\r\nb", "\u{feff}# A\n"] {
            let with = put(text, "one\ntwo\n");
            assert_eq!(put(&with, "one\ntwo\n"), with, "twice changes nothing");
            let back = take_block(&with, MARKDOWN, "one\ntwo\n").unwrap();
            assert_eq!(back.as_deref(), Some(text), "{with:?}");
            let newer = put(&with, "three\n");
            assert!(newer.starts_with(text) && !newer.contains("two"), "{newer:?}");
        }
        assert_eq!(take_block(&put("", "one\n"), MARKDOWN, "one\n").unwrap(), None);
    }

    #[test]
    fn what_a_user_wrote_into_it_stays() {
        let with = put("# A\n", "one\ntwo\n").replace("two\n", "two\nmine\n");
        assert_eq!(put_block(&with, MARKDOWN, "three\n").unwrap(), Outcome::Theirs);
        let back = take_block(&with, MARKDOWN, "one\ntwo\n").unwrap().unwrap();
        assert_eq!(back, "# A\n\nmine\n");
    }

    #[test]
    fn half_a_block_is_left_alone() {
        for text in ["<!-- baton:begin -->\nx\n", "<!-- baton:end -->\n"] {
            assert!(put_block(text, MARKDOWN, "one\n").is_err(), "{text}");
            assert!(take_block(text, MARKDOWN, "one\n").is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_of_ours_is_known_by_its_stamp() {
        let old = file(SLASHES, "old\n");
        assert!(is_our_file(&old) && !is_our_file("old\n"));
        assert_eq!(put_file(&old, "new").unwrap(), Outcome::Text("new".into()));
        assert_eq!(put_file(&format!("{old}more\n"), "new").unwrap(), Outcome::Theirs);
        assert!(put_file("something else\n", "new").is_err());
    }
}
