//! Merges that touch no tree and no index, and what two histories have in common.
//!
//! Owns the questions that `conflicts` asks for many pairs at once: each is one process, however
//! many pairs there are. Invariants: no merge driver, filter, hook or textconv of the repository
//! runs, nothing in any tree is written, and an answer that is not understood is an error, never
//! "clean".

use std::collections::{BTreeMap, BTreeSet};

use super::read::oid_in;
use super::{Error, Git, Oid};

/// Merges in one process: its answer passes through memory.
const MERGES_MAX: usize = 500;
/// Commits that are looked at for where two histories part, before git is asked pair by pair.
const COMMITS_MAX: usize = 50_000;
/// Usage errors: an option that this git does not know.
const NOT_KNOWN: i32 = 129;

/// A file that two sides cannot both have as they want it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clash {
    pub path: String,
    /// In git's word: `contents`, `modify/delete`, `rename/rename` …
    pub kind: String,
    /// Base, ours, theirs.
    pub blobs: [Option<Oid>; 3],
}

/// What changed at a path between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub path: String,
    /// A plain file before, if it was one.
    pub before: Option<Oid>,
    pub after: Option<Oid>,
}

/// A commit that changed a file on its way to the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub commit: Oid,
    pub author: String,
    /// Whose it says it is.
    pub session: Option<String>,
}

impl Git {
    /// Merges each pair on the side, without these merge drivers: those of the repository itself.
    pub fn merge_many(
        &self,
        pairs: &[(Oid, Oid)],
        drivers: &[String],
    ) -> Result<Vec<Vec<Clash>>, Error> {
        let mut merged = Vec::with_capacity(pairs.len());
        for chunk in pairs.chunks(MERGES_MAX) {
            let input: String = chunk.iter().map(|(one, two)| format!("{one} {two}\n")).collect();
            let call = self.call("merge-tree").options(&["--write-tree", "--stdin"]);
            let call = call.options(&["--allow-unrelated-histories"]).without_drivers(drivers);
            match call.input(input.into_bytes()).answer(&[]) {
                Ok(answer) => merged.extend(parse_merges(&answer.output, chunk.len())?),
                // Older than 2.39: one process a pair.
                Err(Error::Failed { status: Some(NOT_KNOWN), .. }) => {
                    for pair in chunk {
                        merged.push(self.merge_one(pair, drivers)?);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(merged)
    }

    fn merge_one(&self, pair: &(Oid, Oid), drivers: &[String]) -> Result<Vec<Clash>, Error> {
        let options = ["--write-tree", "-z", "--allow-unrelated-histories"];
        let call = self.call("merge-tree").options(&options);
        let call = call.options(&[pair.0.as_str(), pair.1.as_str()]).without_drivers(drivers);
        let answer = call.answer(&[1])?;
        let unexpected = || Error::Unexpected { command: "merge-tree".into() };
        let mut fields = answer.output.split(|byte| *byte == 0);
        fields.next().and_then(oid_in).ok_or_else(unexpected)?;
        match answer.status {
            Some(0) => Ok(Vec::new()),
            _ => parse_clashes(&mut fields).ok_or_else(unexpected),
        }
    }

    /// Where each pair of these commits parts, by their places in the list; nothing for a pair
    /// that has nothing in common.
    pub fn bases(
        &self,
        tips: &[Oid],
        wanted: &BTreeSet<(usize, usize)>,
    ) -> Result<BTreeMap<(usize, usize), Option<Oid>>, Error> {
        let mut found = BTreeMap::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let unique: BTreeSet<&str> = tips.iter().map(Oid::as_str).collect();
        let unique: Vec<&str> = unique.into_iter().collect();
        let options = [&["--octopus"][..], &unique].concat();
        let answer = self.call("merge-base").options(&options).answer(&[1])?;
        let below = String::from_utf8_lossy(&answer.output).lines().find_map(Oid::parse);
        let known = match &below {
            Some(below) => self.history(&unique, below)?,
            None => None,
        };
        for (one, two) in wanted {
            let (Some(first), Some(second)) = (tips.get(*one), tips.get(*two)) else { continue };
            let base = match (&known, &below) {
                (Some(history), Some(below)) => {
                    Some(history.base(first, second).unwrap_or_else(|| below.clone()))
                }
                _ => self.merge_base(first, second)?,
            };
            found.insert((*one, *two), base);
        }
        Ok(found)
    }

    fn history(&self, tips: &[&str], below: &Oid) -> Result<Option<History>, Error> {
        let count = format!("--max-count={}", COMMITS_MAX + 1);
        let not = format!("^{below}");
        let options = ["--topo-order", "--parents", &count];
        let call = self.call("rev-list").options(&options).options(tips).options(&[&not]);
        let text = call.text()?;
        let mut history = History::default();
        for line in text.lines() {
            let mut commits = line.split(' ').filter_map(Oid::parse);
            let Some(commit) = commits.next() else { continue };
            history.order.push(commit.clone());
            history.parents.insert(commit, commits.collect());
        }
        history.order.push(below.clone());
        Ok((history.order.len() <= COMMITS_MAX).then_some(history))
    }

    /// What changed from the first to the second of each pair, in one process.
    pub fn differences(&self, pairs: &[(Oid, Oid)]) -> Result<Vec<Vec<Difference>>, Error> {
        let unexpected = || Error::Unexpected { command: "diff-tree".into() };
        let options = [
            "--stdin",
            "-r",
            "-z",
            "--raw",
            "--no-abbrev",
            "--no-renames",
            "--no-ext-diff",
            "--always",
        ];
        // To git the base is the only parent of the other.
        let input: String = pairs.iter().map(|(base, tip)| format!("{tip} {base}\n")).collect();
        if input.is_empty() {
            return Ok(Vec::new());
        }
        let output = self.call("diff-tree").options(&options).input(input.into_bytes()).bytes()?;
        let mut all: Vec<Vec<Difference>> = Vec::with_capacity(pairs.len());
        let mut fields = output.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        while let Some(field) = fields.next() {
            if oid_in(field).is_some() {
                all.push(Vec::new());
                continue;
            }
            let text = std::str::from_utf8(field).map_err(|_| unexpected())?;
            let words: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
            let [mode_before, mode_after, before, after, _] = words[..] else {
                return Err(unexpected());
            };
            let path = fields.next().ok_or_else(unexpected)?;
            let path = String::from_utf8_lossy(path).into_owned();
            let plain = |mode: &str, oid: &str| match mode.starts_with("100") {
                true => Oid::parse(oid),
                false => None,
            };
            let (before, after) = (plain(mode_before, before), plain(mode_after, after));
            all.last_mut().ok_or_else(unexpected)?.push(Difference { path, before, after });
        }
        if all.len() == pairs.len() { Ok(all) } else { Err(unexpected()) }
    }

    /// The commits from the first (without it) to the second that changed a file, newest first.
    pub fn landed(&self, from: &Oid, to: &Oid, path: &str) -> Result<Vec<Landed>, Error> {
        let range = format!("{from}..{to}");
        let format =
            "--format=tformat:%H%x00%an%x00%(trailers:key=Baton-Session,valueonly,separator=%x2C)";
        let options =
            ["-z", format, "--no-show-signature", "--no-notes", "--no-ext-diff", "--no-textconv"];
        let call = self.call("log").options(&options).options(&[&range]).paths([path]);
        let command = call.summary();
        let output = call.bytes()?;
        let text = String::from_utf8_lossy(&output);
        let fields: Vec<&str> = text.split_terminator('\0').collect();
        let one = |fields: &[&str]| {
            let [oid, author, session] = fields else { return None };
            let session = Some(session.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
            Some(Landed { commit: Oid::parse(oid)?, author: (*author).to_owned(), session })
        };
        let all: Option<Vec<Landed>> = fields.chunks(3).map(one).collect();
        all.ok_or(Error::Unexpected { command })
    }

    /// Which commit wrote each of these lines of a file, counted from 1.
    pub fn blamed(&self, at: &Oid, path: &str, from: usize, to: usize) -> Result<Vec<Oid>, Error> {
        let lines = format!("-L{from},{to}");
        let options = ["--porcelain", "--no-textconv", &lines, at.as_str()];
        let output = self.call("blame").options(&options).paths([path]).bytes()?;
        let text = String::from_utf8_lossy(&output);
        // A header is a commit and two or three numbers; lines of the file begin with a tab.
        let header = |line: &str| {
            let (oid, numbers) = line.split_once(' ')?;
            let is = numbers.split(' ').all(|word| word.parse::<u64>().is_ok());
            Oid::parse(oid).filter(|_| is)
        };
        Ok(text.lines().filter_map(header).collect())
    }

    /// The contents of these blobs, without those that are larger than the limit.
    pub fn contents(
        &self,
        blobs: &BTreeSet<Oid>,
        limit: u64,
    ) -> Result<BTreeMap<Oid, Vec<u8>>, Error> {
        let unexpected = || Error::Unexpected { command: "cat-file".into() };
        let mut found = BTreeMap::new();
        if blobs.is_empty() {
            return Ok(found);
        }
        let list = |blobs: &mut dyn Iterator<Item = &Oid>| -> Vec<u8> {
            blobs.map(|blob| format!("{blob}\n")).collect::<String>().into_bytes()
        };
        let all = |blobs: &mut dyn Iterator<Item = &Oid>| {
            self.call("cat-file").options(&["--batch"]).input(list(blobs)).bytes()
        };
        let output = match all(&mut blobs.iter()) {
            // Some are too large, which is known beforehand only by one more process.
            Err(Error::TooMuchOutput { .. }) => {
                let call = self.call("cat-file").options(&["--batch-check"]);
                let sizes = call.input(list(&mut blobs.iter())).text()?;
                let small = |line: &str| {
                    let mut words = line.split(' ');
                    let (oid, _, size) = (words.next()?, words.next()?, words.next()?);
                    let fits = size.parse::<u64>().is_ok_and(|size| size <= limit);
                    Oid::parse(oid).filter(|_| fits)
                };
                let small: BTreeSet<Oid> = sizes.lines().filter_map(small).collect();
                match small.is_empty() {
                    true => return Ok(found),
                    false => all(&mut small.iter())?,
                }
            }
            other => other?,
        };
        let mut rest = output.as_slice();
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(unexpected)?;
            let header = String::from_utf8_lossy(&rest[..end]).into_owned();
            let mut words = header.split(' ');
            let oid = words.next().and_then(Oid::parse).ok_or_else(unexpected)?;
            let kind = words.next().ok_or_else(unexpected)?;
            if kind == "missing" {
                rest = rest.get(end + 1..).unwrap_or_default();
                continue;
            }
            let size: usize = words.next().and_then(|n| n.parse().ok()).ok_or_else(unexpected)?;
            let body = rest.get(end + 1..end + 1 + size).ok_or_else(unexpected)?;
            if kind == "blob" && size as u64 <= limit {
                found.insert(oid, body.to_vec());
            }
            rest = rest.get(end + 2 + size..).unwrap_or_default();
        }
        Ok(found)
    }
}

/// The commits above the one that all have in common, children before parents.
#[derive(Debug, Default)]
struct History {
    order: Vec<Oid>,
    parents: BTreeMap<Oid, Vec<Oid>>,
}

impl History {
    fn reached(&self, tip: &Oid) -> BTreeSet<&Oid> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&Oid> = self.order.iter().find(|one| *one == tip).into_iter().collect();
        while let Some(commit) = open.pop() {
            if reached.insert(commit) {
                open.extend(self.parents.get(commit).into_iter().flatten());
            }
        }
        reached
    }

    /// The first that both have, which no other common one comes after.
    fn base(&self, one: &Oid, two: &Oid) -> Option<Oid> {
        let (ones, twos) = (self.reached(one), self.reached(two));
        self.order.iter().find(|commit| ones.contains(commit) && twos.contains(commit)).cloned()
    }
}

/// What `merge-tree --stdin` answers for so many merges.
fn parse_merges(output: &[u8], count: usize) -> Result<Vec<Vec<Clash>>, Error> {
    let unexpected = || Error::Unexpected { command: "merge-tree".into() };
    let mut fields = output.split(|byte| *byte == 0);
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let state = fields.next().ok_or_else(unexpected)?;
        fields.next().and_then(oid_in).ok_or_else(unexpected)?;
        all.push(match state {
            b"1" => match fields.next() {
                Some(b"") => Vec::new(),
                _ => return Err(unexpected()),
            },
            b"0" => parse_clashes(&mut fields).ok_or_else(unexpected)?,
            _ => return Err(unexpected()),
        });
    }
    Ok(all)
}

/// The files of one merge that conflict, then what git says about each.
fn parse_clashes<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<Vec<Clash>> {
    let mut clashes: BTreeMap<String, Clash> = BTreeMap::new();
    loop {
        let field = fields.next()?;
        if field.is_empty() {
            break;
        }
        let tab = field.iter().position(|byte| *byte == b'\t')?;
        let about = std::str::from_utf8(&field[..tab]).ok()?;
        let path = String::from_utf8_lossy(&field[tab + 1..]).into_owned();
        let mut words = about.split(' ').skip(1);
        let (oid, stage) = (Oid::parse(words.next()?)?, words.next()?.parse::<usize>().ok()?);
        let clash =
            clashes.entry(path.clone()).or_insert_with(|| Clash { path, ..Clash::default() });
        *clash.blobs.get_mut(stage.checked_sub(1)?)? = Some(oid);
    }
    while let Some(field) = fields.next().filter(|field| !field.is_empty()) {
        let count: usize = std::str::from_utf8(field).ok()?.parse().ok()?;
        let paths: Vec<&[u8]> = fields.by_ref().take(count).collect();
        let kind = String::from_utf8_lossy(fields.next()?).into_owned();
        fields.next()?;
        let kind = kind.strip_prefix("CONFLICT (").and_then(|rest| rest.strip_suffix(')'));
        let Some(kind) = kind else { continue };
        for path in paths {
            let path = String::from_utf8_lossy(path).into_owned();
            let clash =
                clashes.entry(path.clone()).or_insert_with(|| Clash { path, ..Clash::default() });
            if clash.kind.is_empty() {
                kind.clone_into(&mut clash.kind);
            }
        }
    }
    Some(clashes.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_that_are_not_understood_are_errors() {
        let oid = "9ac3b86fe468bf686e9921fdbde0c7d4dc3ed49a";
        let clean = format!("1\0{oid}\0\0");
        assert_eq!(parse_merges(clean.as_bytes(), 1).unwrap(), [Vec::new()]);
        assert!(parse_merges(clean.as_bytes(), 2).is_err(), "one is missing");
        assert!(parse_merges(b"7\0x\0\0", 1).is_err());
        assert!(parse_merges(b"", 1).is_err());
        let clash = format!(
            "0\0{oid}\x00100644 {oid} 2\ta b\0\x001\0a b\0CONFLICT (contents)\0said\n\0\0{clean}"
        );
        let merged = parse_merges(clash.as_bytes(), 2).unwrap();
        assert_eq!((merged[0][0].path.as_str(), merged[0][0].kind.as_str()), ("a b", "contents"));
        assert!(merged[0][0].blobs[1].is_some() && merged[1].is_empty());
    }
}
