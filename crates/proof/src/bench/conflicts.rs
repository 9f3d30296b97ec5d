//! `conflicts` over twenty trees of a repository of ten thousand files, against the bare merges.
//!
//! Cold: nothing is remembered. Warm: one file of one tree changed since. The bare calls are what a
//! script would do: one `git merge-tree` a pair, of the branches alone. A process that stays and
//! watches the trees is measured too: it need not look at those that did not change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_core::context::Actor;
use baton_engine::conflicts::Eye;
use baton_engine::conflicts::watching::Changed;

use super::Scale;
use super::landing::git;
use super::page::Line;
use super::samples::{self, Call};
use crate::failure::Failure;
use crate::traffic::Ground;

const TREES: usize = 20;
const FOLDERS: usize = 100;
const FILES_EACH: usize = 100;
/// Files that each tree changes in commits.
const CHANGED_EACH: usize = 5;

pub(super) fn measure(baton: &Path, scale: Scale, lines: &mut Vec<Line>) -> Result<(), Failure> {
    println!("conflicts over {TREES} trees of {} files", FOLDERS * FILES_EACH);
    let ground = Ground::make(None)?;
    let trees = plant(&ground.root())?;
    let call = Call::new(baton, &ground.root(), "");
    let memory = ground.root().join(".git/baton/conflicts");
    let mut workspace = ground.open()?;
    let actor = Actor::default();
    let mut eye = Eye::open(&workspace)?;
    eye.look(&mut workspace, &actor, &Changed::Anything)?;
    let touch = |round: usize, series: usize| -> Result<(), Failure> {
        let file = trees[0].join("src/pkg0/mod0/file0.rs");
        let text = format!("pub fn edited() -> usize {{\n    {round} + {series}\n}}\n");
        std::fs::write(&file, text).map_err(Failure::file("writing", &file))
    };
    let time = |call: &Call| -> Result<Duration, Failure> {
        let (time, code) = call.attempt(&["conflicts", "--json"])?;
        match code {
            Some(0 | 1) => Ok(time),
            other => Err(Failure::said("conflicts", format!("ended with {other:?}"))),
        }
    };
    let rounds = (scale.samples / 100).max(3);
    let [bare, cold, warm, watched] = samples::interleaved(rounds, |round, series| {
        touch(round, series)?;
        match series {
            0 => bare_merges(&ground.root()),
            1 => {
                std::fs::remove_dir_all(&memory).ok();
                time(&call)
            }
            2 => {
                time(&call)?;
                touch(round, 7)?;
                time(&call)
            }
            _ => {
                let changed = Changed::Trees(BTreeSet::from([trees[0].clone()]));
                let started = Instant::now();
                eye.look(&mut workspace, &actor, &changed)?;
                Ok(started.elapsed())
            }
        }
    })?;
    let pairs = TREES * (TREES - 1) / 2 + TREES;
    let name = format!("`conflicts`, {TREES} trees, cold, against {pairs} bare `merge-tree`");
    lines.push(Line::ratio(name, &cold, &bare, 1.2));
    let name = "`conflicts`, one changed tree, against cold".to_owned();
    lines.push(Line::ratio(name, &warm, &cold, 0.15));
    let name = "`conflicts`, one changed tree, by a process that watches, against cold".to_owned();
    lines.push(Line::ratio(name, &watched, &cold, 0.15));
    Ok(())
}

/// The repository, and its trees with commits and a change in none of them.
fn plant(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let write = |path: PathBuf, text: String| {
        let folder = path.parent().unwrap_or(root);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        written.map_err(Failure::file("writing", &path))
    };
    let file_of = |folder: usize, file: usize| {
        format!("src/pkg{}/mod{}/file{file}.rs", folder / 10, folder % 10)
    };
    let text = |name: &str| {
        let one = |n: usize| format!("pub fn {name}_{n}(a: u32) -> u32 {{\n    a * {n}\n}}\n\n");
        (0..8).map(one).collect::<String>()
    };
    for folder in 0..FOLDERS {
        for file in 0..FILES_EACH {
            write(root.join(file_of(folder, file)), text(&format!("f{folder}_{file}")))?;
        }
    }
    git(root, &["checkout", "-q", "-B", "main"])?;
    git(root, &["add", "-A"])?;
    git(root, &["commit", "-qm", "base"])?;
    let mut trees = Vec::with_capacity(TREES);
    for tree in 0..TREES {
        let folder = root.with_file_name(format!("tree{tree}"));
        let (path, branch) = (folder.to_string_lossy().into_owned(), format!("b{tree}"));
        git(root, &["worktree", "add", "-q", &path, "-b", &branch])?;
        for changed in 0..CHANGED_EACH {
            let file = file_of(tree * CHANGED_EACH % FOLDERS, changed + tree);
            write(folder.join(file), text(&format!("t{tree}_{changed}")))?;
        }
        git(&folder, &["commit", "-qam", "own"])?;
        write(folder.join(file_of(tree, 99)), text(&format!("dirty{tree}")))?;
        trees.push(folder.canonicalize().map_err(Failure::file("finding", &folder))?);
    }
    Ok(trees)
}

/// A merge with conflicts ends with another code, and has been done all the same.
fn merge(root: &Path, words: &[&str]) -> Result<(), Failure> {
    git(root, words).or(Ok(()))
}

fn bare_merges(root: &Path) -> Result<Duration, Failure> {
    let started = Instant::now();
    for one in 0..TREES {
        let first = format!("b{one}");
        for two in one + 1..TREES {
            let second = format!("b{two}");
            merge(root, &["merge-tree", "--write-tree", "-z", &first, &second])?;
        }
        merge(root, &["merge-tree", "--write-tree", "-z", &first, "main"])?;
    }
    Ok(started.elapsed())
}
