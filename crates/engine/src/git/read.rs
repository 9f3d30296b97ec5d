//! What Baton asks a repository: what is dirty, what was committed, where it comes from.
//!
//! Owns the parsing of git's machine formats. It refuses to change anything. Invariant: an answer
//! that cannot be understood is an error, so a dirty file is never taken for a clean one.

use std::collections::BTreeMap;
use std::path::Path;

use super::{At, Error, Git, Oid};

/// Paths on one command line, far below any system's limit.
pub(super) const PATHS_BYTES_MAX: usize = 64 * 1024;
/// Repositories inside repositories that a status goes down into.
const NESTING_MAX: usize = 4;

/// A commit that touched a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub oid: Oid,
    /// Seconds since 1970, as the author's clock had it.
    pub author_seconds: i64,
    pub author: String,
    pub subject: String,
}

/// A setting of git, and whose it is: `system`, `global`, `local` …
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(super) scope: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// What differs from HEAD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// HEAD itself, none before the first commit; unknown if only nested repositories were asked.
    pub head: Option<Option<Oid>>,
    pub changed: Vec<Changed>,
    /// Names that are ignored, folders with a `/` at their end; only where they were asked for.
    pub ignored: Vec<String>,
}

impl Status {
    pub fn paths(&self) -> Vec<&str> {
        self.changed.iter().map(|changed| changed.path.as_str()).collect()
    }
}

/// A file that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub path: String,
    /// What was staged: a mode and a blob, or a removal.
    pub staged: Option<Option<(String, Oid)>>,
    /// The index has content that is neither in HEAD nor in the tree.
    pub hides_staged: bool,
    /// What the index has: a mode and a blob, or nothing. Unknown where a status does not tell.
    pub indexed: Option<Option<(String, Oid)>>,
    pub unmerged: bool,
    /// It is a submodule, in HEAD, in the index or in the tree.
    pub is_module: bool,
}

impl Changed {
    pub(crate) fn unstaged(path: String) -> Self {
        let (staged, indexed) = (None, None);
        Self { path, staged, hides_staged: false, indexed, unmerged: false, is_module: false }
    }
}

impl Git {
    /// Which files at or below these paths differ from HEAD, untracked ones included and ignored
    /// ones not. A path inside a nested repository is asked of that one; a folder is asked without
    /// the submodules in it. No paths, no answer: it never means everything (that is `""`).
    pub fn status(&self, paths: &[String]) -> Result<Status, Error> {
        self.status_below(paths, NESTING_MAX, "--ignored=no", None)
    }

    /// The same, where the repository's own filters are known already.
    pub fn status_without(&self, paths: &[String], filters: &[String]) -> Result<Status, Error> {
        self.status_below(paths, NESTING_MAX, "--ignored=no", Some(filters))
    }

    /// The same of the whole tree, and what is ignored in it.
    pub(super) fn status_with_ignored(&self) -> Result<Status, Error> {
        self.status_below(&[String::new()], NESTING_MAX, "--ignored=matching", None)
    }

    fn status_below(
        &self,
        paths: &[String],
        nesting_left: usize,
        ignored: &'static str,
        filters: Option<&[String]>,
    ) -> Result<Status, Error> {
        let root = self.folder();
        let mut nested: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut own = Vec::new();
        for path in paths {
            match nested_repository(root, path) {
                Some((folder, rest)) => nested.entry(folder).or_default().push(rest),
                None => own.push(path.as_str()),
            }
        }
        let own = match own.is_empty() {
            true => Status::default(),
            false => match filters {
                Some(filters) => self.own_status(&own, ignored, filters)?,
                None => self.own_status(&own, ignored, &self.own_filters()?)?,
            },
        };
        self.with_nested(own, nested, nesting_left)
    }

    /// Which of these names and what is below them differ from HEAD, and which are ignored. They
    /// are names in folders of this repository itself.
    pub(super) fn status_of_names(
        &self,
        names: &[&str],
        filters: &[String],
    ) -> Result<Status, Error> {
        let own = self.own_status(names, "--ignored=matching", filters)?;
        self.with_nested(own, BTreeMap::new(), NESTING_MAX)
    }

    /// Asks the repositories within this one: those that are named, and those in the answer.
    fn with_nested(
        &self,
        own: Status,
        mut nested: BTreeMap<String, Vec<String>>,
        nesting_left: usize,
    ) -> Result<Status, Error> {
        let mut changed = Vec::new();
        for one in own.changed {
            match one.path.strip_suffix('/') {
                // An untracked repository is shown as a folder and nothing more.
                Some(folder) => nested.entry(folder.to_owned()).or_default().push(String::new()),
                None => changed.push(one),
            }
        }
        for (folder, paths) in nested {
            let Some(nesting_left) = nesting_left.checked_sub(1) else {
                changed.push(Changed::unstaged(folder));
                continue;
            };
            let inner = Git { place: At::Tree(self.folder().join(&folder)), ..self.clone() };
            // What is staged there is known there only, and it has filters of its own.
            let found = inner.status_below(&paths, nesting_left, "--ignored=no", None)?;
            let found = found.changed.into_iter();
            let outer = found.map(|one| Changed::unstaged(format!("{folder}/{}", one.path)));
            changed.extend(outer);
        }
        changed.sort_by(|one, two| one.path.cmp(&two.path));
        changed.dedup_by(|one, two| one.path == two.path);
        Ok(Status { head: own.head, changed, ignored: own.ignored })
    }

    fn own_status(
        &self,
        paths: &[&str],
        ignored: &str,
        filters: &[String],
    ) -> Result<Status, Error> {
        let mut status = Status::default();
        for chunk in chunks(paths) {
            let options = [
                "--porcelain=v2",
                "-z",
                "--untracked-files=all",
                ignored,
                // Asking a submodule would spawn git there, past the filters switched off here.
                "--ignore-submodules=dirty",
                "--no-renames",
                "--branch",
                "--no-ahead-behind",
            ];
            let call = self.call("status").options(&options).without_filters(filters);
            let output = call.paths(chunk.iter().copied()).bytes()?;
            parse_status(&output, &mut status)?;
        }
        Ok(status)
    }

    /// Every setting that is in force here, in the order in which git reads them.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>, Error> {
        let options = ["-z", "--show-scope", "--list"];
        let output = self.call("config").options(&options).bytes()?;
        Ok(parse_settings(&output))
    }

    /// The settings of these names.
    pub(super) fn settings_like(&self, pattern: &str) -> Result<Vec<Setting>, Error> {
        let options = ["-z", "--show-scope", "--get-regexp", pattern];
        let answer = self.call("config").options(&options).answer(&[1])?;
        Ok(parse_settings(&answer.output))
    }

    /// Every file of the tree that git tracks or would track. Names that are not UTF-8 are left
    /// out: this is for looking around, not for judging.
    pub fn list_files(&self) -> Result<Vec<String>, Error> {
        let options = ["-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
        let output = self.call("ls-files").options(&options).bytes()?;
        let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| std::str::from_utf8(name).ok()).map(str::to_owned).collect())
    }

    /// What of the tree git ignores; of a folder that it ignores, nothing below.
    pub fn all_ignored(&self) -> Result<Vec<String>, Error> {
        let options = ["-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let output = self.call("ls-files").options(&options).bytes()?;
        let found = String::from_utf8_lossy(&output);
        let found = found.split('\0').filter(|name| !name.is_empty());
        Ok(found.map(|name| name.trim_end_matches('/').to_owned()).collect())
    }

    /// Which of these files git ignores or would ignore; a tracked one never is.
    pub fn would_ignore(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        // A name that begins with a colon would be an order to git.
        let input: String = paths.iter().map(|path| format!("./{path}\0")).collect();
        let call = self.call("check-ignore").options(&["-z", "--stdin"]).input(input.into_bytes());
        let answer = match call.answer(&[1]) {
            // Git gives up on all of them where one lies in a submodule, of which it knows nothing.
            Err(Error::Failed { .. }) if paths.len() > 1 => {
                let each = paths.iter().map(|path| self.would_ignore(std::slice::from_ref(path)));
                return Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect());
            }
            Err(Error::Failed { .. }) => return Ok(Vec::new()),
            answer => answer?,
        };
        let names = names(&answer.output)?;
        Ok(names.iter().map(|name| name.trim_start_matches("./").to_owned()).collect())
    }

    /// Lines of a commit's text files in which one of these stands, in any case: path, line number
    /// and text. At most `each` of a file.
    pub fn lines_with(
        &self,
        commit: &Oid,
        words: &[String],
        each: usize,
    ) -> Result<Vec<(String, u64, String)>, Error> {
        let each = format!("--max-count={each}");
        let mut options =
            vec!["-I", "-i", "-n", "-z", "-F", "--full-name", "--no-color", "--no-textconv", &each];
        options.extend(words.iter().flat_map(|word| ["-e", word.as_str()]));
        options.extend(["--end-of-options", commit.as_str()]);
        let answer = self.call("grep").options(&options).answer(&[1])?;
        let text = String::from_utf8_lossy(&answer.output);
        let prefix = format!("{commit}:");
        let one = |line: &str| {
            let mut fields = line.splitn(3, '\0');
            let path = fields.next()?.strip_prefix(&prefix)?.to_owned();
            Some((path, fields.next()?.parse().ok()?, fields.next()?.to_owned()))
        };
        Ok(text.lines().filter_map(one).collect())
    }

    /// What HEAD names; nothing before the first commit.
    pub fn head(&self) -> Result<Option<Oid>, Error> {
        self.resolve("HEAD^{commit}")
    }

    pub fn commit_exists(&self, oid: &Oid) -> Result<bool, Error> {
        let answer = self.call("cat-file").options(&["-t", oid.as_str()]).answer(&[1, 128])?;
        Ok(answer.output == b"commit\n")
    }

    /// What a revision names, if it exists.
    pub(crate) fn resolve(&self, revision: &str) -> Result<Option<Oid>, Error> {
        let call = self.call("rev-parse").options(&["--verify", "--quiet"]);
        let call = call.revisions(&[revision]);
        let command = call.summary();
        let answer = call.answer(&[1])?;
        if answer.status == Some(1) {
            return Ok(None);
        }
        oid_in(&answer.output).map(Some).ok_or(Error::Unexpected { command })
    }

    /// What each of these revisions names, in one process; nothing for what does not exist.
    pub(super) fn objects_named(&self, revisions: &[String]) -> Result<Vec<Option<Oid>>, Error> {
        // A line is a question: none may hold two.
        if revisions.is_empty() || revisions.iter().any(|one| one.contains('\n')) {
            return Ok(vec![None; revisions.len()]);
        }
        let input: String = revisions.iter().map(|one| format!("{one}\n")).collect();
        let call = self.call("cat-file").options(&["--batch-check=%(objectname)"]);
        let text = call.input(input.into_bytes()).text()?;
        let found: Vec<Option<Oid>> = text.lines().map(Oid::parse).collect();
        let whole = found.len() == revisions.len();
        whole.then_some(found).ok_or(Error::Unexpected { command: "cat-file".into() })
    }

    /// The first commit of the history, by which clones know each other. A shallow clone cannot
    /// know it, and an empty repository has none.
    pub fn root_commit(&self) -> Result<Option<Oid>, Error> {
        let shallow = self.call("rev-parse").options(&["--is-shallow-repository"]).text()?;
        let Some(head) = self.head()?.filter(|_| shallow.trim() == "false") else {
            return Ok(None);
        };
        let call = self.call("rev-list").options(&["--max-parents=0", head.as_str()]);
        let text = call.text()?;
        // Joined histories have several; the smallest is the same in every clone.
        Ok(text.lines().filter_map(Oid::parse).min())
    }

    /// Where the repository comes from: `origin`, else its only remote. A password in the address
    /// is left out.
    pub fn remote_url(&self) -> Result<Option<String>, Error> {
        let options = ["-z", "--get-regexp", r"^remote\..*\.url$"];
        let answer = self.call("config").options(&options).answer(&[1])?;
        let text = String::from_utf8_lossy(&answer.output);
        let remotes: Vec<(&str, &str)> =
            text.split_terminator('\0').filter_map(|entry| entry.split_once('\n')).collect();
        let origin = remotes.iter().find(|(key, _)| *key == "remote.origin.url");
        let only = remotes.first().filter(|_| remotes.len() == 1);
        Ok(origin.or(only).map(|(_, url)| without_password(url)))
    }

    /// The commits on HEAD that are not in `base`, newest first; without a base, all.
    pub fn commits_since(&self, base: Option<&str>, limit: usize) -> Result<Vec<Commit>, Error> {
        let Some(range) = self.range(base)? else { return Ok(Vec::new()) };
        self.log(&range, limit, None)
    }

    /// The files in which HEAD differs from `base`; without a base, every file.
    pub fn changed_since(&self, base: Option<&str>) -> Result<Vec<String>, Error> {
        let output = match (self.head()?, base.and_then(Oid::parse)) {
            (None, _) => return Ok(Vec::new()),
            (Some(head), None) => {
                let options = ["-r", "-z", "--name-only", head.as_str()];
                self.call("ls-tree").options(&options).bytes()?
            }
            (Some(head), Some(base)) => {
                let options = ["-r", "-z", "--name-only", "--no-renames", "--no-ext-diff"];
                let ends = [base.as_str(), head.as_str()];
                self.call("diff-tree").options(&options).options(&ends).bytes()?
            }
        };
        names(&output)
    }

    /// The files that one commit changed.
    pub fn files_of(&self, commit: &Oid) -> Result<Vec<String>, Error> {
        let options = ["-r", "-z", "-m", "--root", "--name-only", "--no-commit-id", "--no-renames"];
        let call = self.call("diff-tree").options(&options).options(&[commit.as_str()]);
        names(&call.bytes()?)
    }

    /// `base..HEAD` in full; nothing before the first commit, or when the base is gone.
    fn range(&self, base: Option<&str>) -> Result<Option<String>, Error> {
        let Some(head) = self.head()? else { return Ok(None) };
        let Some(base) = base else { return Ok(Some(head.as_str().to_owned())) };
        match Oid::parse(base) {
            Some(base) if self.commit_exists(&base)? => Ok(Some(format!("{base}..{head}"))),
            _ => Ok(None),
        }
    }

    /// The latest commits that touched a path, newest first.
    pub fn log_of_path(&self, path: &str, limit: usize) -> Result<Vec<Commit>, Error> {
        let Some(head) = self.head()? else { return Ok(Vec::new()) };
        self.log(head.as_str(), limit, Some(path))
    }

    /// The commits of `tip` that `head` has not, newest first.
    pub(super) fn log_between(
        &self,
        head: &Oid,
        tip: &Oid,
        limit: usize,
    ) -> Result<Vec<Commit>, Error> {
        self.log(&format!("{head}..{tip}"), limit, None)
    }

    fn log(&self, range: &str, limit: usize, path: Option<&str>) -> Result<Vec<Commit>, Error> {
        let count = format!("--max-count={limit}");
        let options = [
            "-z",
            "--format=tformat:%H%x00%at%x00%an%x00%s",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-notes",
            "--no-color",
            "--no-decorate",
            &count,
            range,
        ];
        let call = self.call("log").options(&options).paths(path);
        let command = call.summary();
        let output = call.bytes()?;
        let text = String::from_utf8_lossy(&output);
        let fields: Vec<&str> = text.split_terminator('\0').collect();
        let commits = fields.chunks(4).map(|fields| {
            let [oid, seconds, author, subject] = fields else { return None };
            let author_seconds = seconds.parse().ok()?;
            let (author, subject) = ((*author).to_owned(), (*subject).to_owned());
            Some(Commit { oid: Oid::parse(oid)?, author_seconds, author, subject })
        });
        commits.collect::<Option<_>>().ok_or(Error::Unexpected { command })
    }
}

fn parse_settings(output: &[u8]) -> Vec<Setting> {
    let text = String::from_utf8_lossy(output);
    let mut fields = text.split_terminator('\0');
    let mut settings = Vec::new();
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let (scope, key, value) = (scope.to_owned(), key.to_owned(), value.to_owned());
        settings.push(Setting { scope, key, value });
    }
    settings
}

pub(super) fn oid_in(output: &[u8]) -> Option<Oid> {
    std::str::from_utf8(output).ok().and_then(|text| Oid::parse(text.trim_end()))
}

pub(super) fn names(output: &[u8]) -> Result<Vec<String>, Error> {
    let name = |name: &[u8]| match std::str::from_utf8(name) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(Error::NotUtf8 { lossy: String::from_utf8_lossy(name).into_owned() }),
    };
    output.split(|byte| *byte == 0).filter(|one| !one.is_empty()).map(name).collect()
}

/// The outermost repository between the root and the path, and the rest of the path in it.
pub(crate) fn nested_repository(root: &Path, path: &str) -> Option<(String, String)> {
    let ends = path.match_indices('/').map(|(index, _)| index);
    ends.chain([path.len()]).filter(|end| *end > 0).find_map(|end| {
        let folder = &path[..end];
        // The repository's own folder is shown by the outer one as well, but only as a name.
        std::fs::symlink_metadata(root.join(folder).join(".git")).ok()?;
        let rest = path[end..].trim_start_matches('/');
        Some((folder.to_owned(), rest.to_owned()))
    })
}

pub(super) fn chunks<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = &'a [&'a str]> {
    let mut rest = paths;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|path| {
            bytes += path.len() + 1;
            bytes <= PATHS_BYTES_MAX
        });
        let count = fits.count().max(1).min(rest.len());
        let (chunk, left) = rest.split_at(count);
        rest = left;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Adds what a `status --porcelain=v2 -z --branch` without renames tells.
fn parse_status(output: &[u8], status: &mut Status) -> Result<(), Error> {
    let unexpected = || Error::Unexpected { command: "status".to_owned() };
    for entry in output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        // The number of fields before the path, by the kind of entry.
        let fields = match entry.first() {
            Some(b'1') => 8,
            Some(b'u') => 10,
            Some(b'?') => 1,
            Some(b'!') => {
                // One that cannot be named here is merely not known to be ignored.
                let name = entry.get(2..).and_then(|name| std::str::from_utf8(name).ok());
                status.ignored.extend(name.map(str::to_owned));
                continue;
            }
            Some(b'#') => {
                if let Some(head) = entry.strip_prefix(b"# branch.oid ") {
                    status.head = Some(oid_in(head));
                }
                continue;
            }
            _ => return Err(unexpected()),
        };
        let mut words = entry.splitn(fields + 1, |byte| *byte == b' ');
        let before: Vec<&[u8]> = words.by_ref().take(fields).collect();
        let path = words.next().ok_or_else(unexpected)?;
        let text = std::str::from_utf8(path);
        let lossy = || String::from_utf8_lossy(path).into_owned();
        let mut changed =
            Changed::unstaged(text.map_err(|_| Error::NotUtf8 { lossy: lossy() })?.to_owned());
        changed.is_module = before.get(2).is_some_and(|about| about.first() == Some(&b'S'));
        match before[..] {
            [b"1", [in_index, in_tree], _, _, mode, _, _, blob] => {
                let mode = std::str::from_utf8(mode).map_err(|_| unexpected())?.to_owned();
                let blob = oid_in(blob).map(|blob| (mode, blob));
                if *in_index != b'.' {
                    let blob = blob.clone().ok_or_else(unexpected)?;
                    changed.staged = Some((*in_index != b'D').then_some(blob));
                    changed.hides_staged = *in_tree != b'.' && *in_index != b'D';
                }
                // No mode: it is gone from the index, or is in it only as an intent to add it.
                changed.indexed = blob.filter(|(mode, _)| mode != "000000").map(Some);
            }
            [b"?"] => changed.indexed = Some(None),
            _ => changed.unmerged = true,
        }
        status.changed.push(changed);
    }
    Ok(())
}

fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            // Over http a user name alone is often the token itself.
            let kept = if scheme.starts_with("http") { String::new() } else { format!("{user}@") };
            format!("{scheme}://{kept}{host}{}", &rest[end..])
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_shown_without_secrets() {
        let cases = [
            ("https://user:secret@host/x.git", "https://host/x.git"),
            ("https://token@host:8443/x", "https://host:8443/x"),
            ("ssh://git:pw@host/x", "ssh://git@host/x"),
            ("git@host:x/y.git", "git@host:x/y.git"),
            ("https://host/a@b", "https://host/a@b"),
            ("/srv/x.git", "/srv/x.git"),
        ];
        for (url, expected) in cases {
            assert_eq!(without_password(url), expected);
        }
    }

    #[test]
    fn a_status_that_is_not_understood_is_an_error() {
        let parse = |output: &[u8]| {
            let mut status = Status::default();
            parse_status(output, &mut status).map(|()| status)
        };
        assert!(parse(b"2 R. N... 1 2 3 4 5 R100 new\0old\0").is_err());
        assert!(parse(b"1 .M N...\0").is_err());
        assert!(parse(b"1 MM N... 1 2 3 4 5 a\0").is_err(), "no blob");
        assert!(matches!(parse(b"? \xff\0"), Err(Error::NotUtf8 { .. })));
        let spaces = parse(b"# branch.oid (initial)\x001 .M N... 1 2 3 4 5 a b\0? c d/\0").unwrap();
        assert_eq!(spaces.paths(), ["a b", "c d/"]);
        assert_eq!(spaces.head, Some(None));
    }

    #[test]
    fn long_lists_are_cut_into_pieces() {
        let path = "x".repeat(PATHS_BYTES_MAX / 2);
        let paths = [&*path, &*path, &*path];
        assert_eq!(chunks(&paths).map(<[_]>::len).sum::<usize>(), 3);
        assert_eq!(chunks(&paths).count(), 3);
        assert_eq!(chunks(&["a", "b"]).count(), 1);
    }
}
