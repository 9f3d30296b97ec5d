//! A patch as text: is it one, and which file does it change?
//!
//! Owns reading unified diffs, as far as one must to know that a patch does what it says and no
//! more: text of plain files, one file, no renames, no modes, no binaries. Whether it applies is
//! git's to say.

/// The longest patch.
pub const BYTES_MAX: usize = 256 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Malformed {
    pub line: usize,
    pub what: String,
}

/// What a patch changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Each file once, as git will find it.
    pub files: Vec<String>,
    /// How many leading folders of the names are not of the path: `a/` and `b/`.
    pub strip: u8,
    pub added: usize,
    pub removed: usize,
}

/// Reads a patch; says which line makes no sense.
pub fn outline(text: &str) -> Result<Outline, Malformed> {
    let mut reader = Reader { lines: text.lines().enumerate().peekable(), at: 0 };
    let mut outline = Outline { files: Vec::new(), strip: 1, added: 0, removed: 0 };
    let mut strips = Vec::new();
    while let Some((number, line)) = reader.next() {
        if let Some(what) = forbidden(line) {
            return Err(Malformed { line: number, what: what.to_owned() });
        }
        let Some(old) = line.strip_prefix("--- ") else {
            if line.starts_with("@@") || line.starts_with("+++ ") {
                let what = "a hunk without the names of its file (--- and +++)".to_owned();
                return Err(Malformed { line: number, what });
            }
            // Words before the first file, `diff --git`, `index`: git reads past them as well.
            continue;
        };
        let (number, line) = reader.must("+++ and the new name of the file")?;
        let Some(new) = line.strip_prefix("+++ ") else {
            let what = "after --- comes +++ with the new name of the file".to_owned();
            return Err(Malformed { line: number, what });
        };
        let (file, strip) = file_of(number, old, new)?;
        if !outline.files.contains(&file) {
            outline.files.push(file);
        }
        strips.push(strip);
        let hunks = reader.hunks(&mut outline)?;
        if hunks == 0 {
            return Err(Malformed { line: reader.at, what: "a file without a hunk".to_owned() });
        }
    }
    if outline.files.is_empty() {
        let what = "this is no patch: it names no file".to_owned();
        return Err(Malformed { line: reader.at.max(1), what });
    }
    outline.strip = strips.iter().copied().max().unwrap_or(1);
    if strips.iter().any(|strip| *strip != outline.strip) {
        let what = "some names begin with a/ and b/ and some do not".to_owned();
        return Err(Malformed { line: 1, what });
    }
    Ok(outline)
}

fn forbidden(line: &str) -> Option<&'static str> {
    let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    if starts(&["GIT binary patch", "Binary files "]) {
        return Some("a binary patch cannot be read by whoever is to judge it");
    }
    if starts(&["rename ", "copy ", "similarity index", "dissimilarity index"]) {
        return Some("a suggestion changes one file where it is: no renames and copies");
    }
    if starts(&["old mode", "new mode"]) {
        return Some("a suggestion changes text, not modes");
    }
    let mode =
        ["new file mode ", "deleted file mode "].iter().find_map(|head| line.strip_prefix(head));
    mode.filter(|mode| !matches!(*mode, "100644" | "100755")).map(|_| "only plain files")
}

/// The one file of a pair of names, and whether they begin with `a/` and `b/`.
fn file_of(line: usize, old: &str, new: &str) -> Result<(String, u8), Malformed> {
    let plain = |name: &str| name.split('\t').next().unwrap_or_default().trim_end().to_owned();
    let (old, new) = (plain(old), plain(new));
    let wrong = |what: &str| Malformed { line, what: what.to_owned() };
    let there = |name: &str| name != "/dev/null";
    if old.is_empty() || new.is_empty() || !there(&old) && !there(&new) {
        return Err(wrong("a file needs a name"));
    }
    if old.starts_with('"') || new.starts_with('"') {
        return Err(wrong("names in quotes are not read: use git -c core.quotePath=false diff"));
    }
    let stripped = |name: &str, head: &str| name.strip_prefix(head).map(str::to_owned);
    let (a, b) = (stripped(&old, "a/"), stripped(&new, "b/"));
    match (there(&old), there(&new)) {
        (true, true) if a.is_some() && a == b => Ok((a.unwrap_or_default(), 1)),
        (true, true) if old == new => Ok((new, 0)),
        (true, true) => Err(wrong("the old and the new name differ")),
        (false, _) => Ok(b.map_or((new, 0), |name| (name, 1))),
        (_, false) => Ok(a.map_or((old, 0), |name| (name, 1))),
    }
}

struct Reader<'a> {
    lines: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
    /// The number of the last line that was read.
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<(usize, &'a str)> {
        let (index, line) = self.lines.next()?;
        self.at = index + 1;
        Some((self.at, line))
    }

    fn must(&mut self, what: &str) -> Result<(usize, &'a str), Malformed> {
        let end = self.at;
        self.next().ok_or_else(|| Malformed { line: end, what: format!("it ends before {what}") })
    }

    fn hunks(&mut self, outline: &mut Outline) -> Result<usize, Malformed> {
        let mut count = 0;
        while let Some((_, line)) = self.lines.peek().copied() {
            if !line.starts_with("@@") {
                break;
            }
            let Some((number, line)) = self.next() else { break };
            let lengths = header(line).ok_or_else(|| Malformed {
                line: number,
                what: "this is no header of a hunk such as @@ -1,3 +1,4 @@".to_owned(),
            })?;
            self.hunk(lengths, outline)?;
            count += 1;
        }
        Ok(count)
    }

    fn hunk(
        &mut self,
        (mut old, mut new): (usize, usize),
        outline: &mut Outline,
    ) -> Result<(), Malformed> {
        while old > 0 || new > 0 {
            let (number, line) = self.must("the end of its last hunk")?;
            let (takes_old, takes_new) = match line.as_bytes().first() {
                Some(b' ') | None => (1, 1),
                Some(b'-') => (1, 0),
                Some(b'+') => (0, 1),
                Some(b'\\') => (0, 0),
                Some(_) => {
                    let what = "a line of a hunk begins with a space, + or -".to_owned();
                    return Err(Malformed { line: number, what });
                }
            };
            let longer = || Malformed {
                line: number,
                what: "the hunk is longer than its header says".to_owned(),
            };
            old = old.checked_sub(takes_old).ok_or_else(longer)?;
            new = new.checked_sub(takes_new).ok_or_else(longer)?;
            outline.removed += takes_old & !takes_new & 1;
            outline.added += takes_new & !takes_old & 1;
        }
        if self.lines.peek().is_some_and(|(_, line)| line.starts_with('\\')) {
            self.next();
        }
        Ok(())
    }
}

/// The lengths in `@@ -1,3 +1,4 @@ …`.
fn header(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let length = |range: &str| match range.split_once(',') {
        Some((start, length)) => start.parse::<usize>().ok().and(length.parse().ok()),
        None => range.parse::<usize>().ok().map(|_| 1),
    };
    Some((length(old)?, length(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
diff --git a/src/a.rs b/src/a.rs
index 1..2 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,2 +1,3 @@ fn a
 one
-two
+2
+3
@@ -9 +10 @@
-x
+y
\\ No newline at end of file
";

    #[test]
    fn a_patch_says_which_file_it_changes() {
        let read = outline(GOOD).unwrap();
        assert_eq!((read.files, read.strip), (vec!["src/a.rs".to_owned()], 1));
        assert_eq!((read.added, read.removed), (3, 2));
        let plain = GOOD.replace("a/src", "src").replace("b/src", "src");
        assert_eq!(outline(&plain).unwrap().strip, 0);
        let made = "new file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";
        assert_eq!(outline(made).unwrap().files, ["new"]);
        let gone = "--- a/old\t2026-01-01\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        assert_eq!(outline(gone).unwrap().files, ["old"]);
        let two = format!("{GOOD}--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n");
        assert_eq!(outline(&two).unwrap().files, ["src/a.rs", "b"]);
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let head = "--- a/x\n+++ b/x\n";
        for (text, line) in [
            (String::new(), 1),
            ("hello\nworld\n".to_owned(), 2),
            ("--- a/x\n".to_owned(), 1),
            ("--- a/x\nx\n".to_owned(), 2),
            (head.to_owned(), 2),
            ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-x\n+y\n".to_owned(), 2),
            (format!("{head}@@ -1 1 @@\n"), 3),
            (format!("{head}@@ -1,2 +1,2 @@\n a\n"), 4),
            (format!("{head}@@ -1,2 +1,2 @@\n a\n*b\n"), 5),
            (format!("{head}@@ -1 +1,2 @@\n-a\n-b\n"), 5),
            (format!("{GOOD}GIT binary patch\n"), 14),
            ("@@ -1 +1 @@\n".to_owned(), 1),
            ("rename from x\n".to_owned(), 1),
            ("new file mode 120000\n".to_owned(), 1),
            ("old mode 100644\n".to_owned(), 1),
            ("--- \"a/x\\t\"\n+++ \"b/x\\t\"\n".to_owned(), 2),
            (format!("{GOOD}--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n"), 1),
        ] {
            assert_eq!(outline(&text).unwrap_err().line, line, "{text}");
        }
    }
}
