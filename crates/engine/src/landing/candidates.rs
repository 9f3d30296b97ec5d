//! Which landings may be part of a candidate, and the candidates themselves.
//!
//! Owns the way from the line to the stack: what is there already, what people must approve first,
//! what lies uncommitted in the way, what conflicts. A landing that cannot go on is held or goes
//! back, with the reason, and the rest is stacked without it.

use std::collections::BTreeSet;

use baton_core::landing::{Cause, Landing, State};
use baton_core::landings::Why;
use baton_core::landings::running::{self, Gated};
use baton_core::landings::searching::Footprint;
use baton_core::task::Task;
use baton_core::trust;
use baton_core::view::get;

use super::Progress;
use super::moving::{Standing, overlap_words};
use super::runner::{Entry, Run, Scene};
use super::stacking::{Stacked, Stacker};
use crate::config;
use crate::conflicts::undo::{self, Undone};
use crate::failure::Failure;
use crate::git::Oid;
use crate::trees;

/// May a landing go on?
enum Admitted {
    /// With these files.
    Yes(Vec<String>),
    /// Not now.
    Held,
    /// It is no more in line.
    Over,
}

impl Run<'_> {
    /// Candidates upon the target, in the order of the line. True when something went back or was
    /// found to be there already.
    pub(super) fn stack(
        &mut self,
        scene: &Scene,
        waiting: &[Landing],
    ) -> Result<(Vec<Entry>, bool), Failure> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut changed = false;
        let mut at = scene.tip.clone();
        let landed = super::landed_commits(self.workspace)?;
        let driver: Vec<trust::Command> = trust::commands(&scene.policy)
            .into_iter()
            .filter(|command| command.what == "queue merge driver")
            .collect();
        let driver_trusted = self.look(|view| trust::untrusted(view, &driver))?.is_empty();
        let standing = match scene.target.remote {
            None => scene.target.standing(self.workspace, &self.git)?,
            Some(_) => Vec::new(),
        };
        for landing in waiting.iter().filter(|one| one.target == scene.target.name) {
            let Some(tip) = Oid::parse(&landing.tip) else { continue };
            let paths = match self.admitted(scene, landing, &tip, &standing)? {
                Admitted::Yes(paths) => paths,
                Admitted::Held => continue,
                Admitted::Over => {
                    changed = true;
                    continue;
                }
            };
            let stacker = Stacker { git: &self.git, policy: &scene.policy, driver_trusted };
            let commit = match stacker.put(landing, &tip, &at)? {
                Stacked::Commit(commit) => commit,
                Stacked::Conflict(files) => {
                    let alone = match at == scene.tip {
                        true => Stacked::Conflict(files.clone()),
                        false => stacker.put(landing, &tip, &scene.tip)?,
                    };
                    changed |= self.conflict(landing, scene, files, &alone, &entries)?;
                    continue;
                }
            };
            at = commit.clone();
            entries.push(Entry {
                landing: landing.clone(),
                tree: self.git.tree_of_commit(&commit)?,
                contains: super::contained(&self.git, &landed, &tip)?,
                footprint: self.footprint(landing, &paths)?,
                tip,
                commit,
            });
        }
        Ok((entries, changed))
    }

    /// What git, people and rules say before it may be part of a candidate.
    fn admitted(
        &mut self,
        scene: &Scene,
        landing: &Landing,
        tip: &Oid,
        standing: &[Standing],
    ) -> Result<Admitted, Failure> {
        let back = |run: &mut Self, cause: Cause, why: &str| -> Result<Admitted, Failure> {
            run.returned(&landing.landing, &Why::new(cause, why))?;
            Ok(Admitted::Over)
        };
        if !self.git.commit_exists(tip)? {
            return back(self, Cause::Gone, "its commit is not there any more");
        }
        if self.is_there(scene, landing, tip)? {
            return Ok(Admitted::Over);
        }
        if landing.state == State::Proposed {
            return Ok(Admitted::Held);
        }
        let Some(base) = self.git.common(&scene.tip, tip)? else {
            return back(self, Cause::Conflict, "it has no history in common with the target");
        };
        let paths = self.git.changed_between(&base, tip)?;
        if let Some(not) = self.asked(scene, landing, tip, &paths)? {
            return Ok(not);
        }
        for tree in standing {
            let files = tree.overlap(&scene.tip, tip, &paths)?;
            if !files.is_empty() {
                let words = overlap_words(tree.root(), &scene.target.name, &files);
                let why = Why { files, ..Why::new(Cause::Overlap, words) };
                self.held(&landing.landing, &why)?;
                return Ok(Admitted::Held);
            }
        }
        Ok(Admitted::Yes(paths))
    }

    /// Is it in the target already? Then that is written down.
    fn is_there(&mut self, scene: &Scene, landing: &Landing, tip: &Oid) -> Result<bool, Failure> {
        let proposed = landing.commit.as_deref().and_then(Oid::parse);
        let commit = match (&proposed, landing.state) {
            (Some(commit), State::Proposed) => commit,
            _ => tip,
        };
        if !self.git.is_ancestor(commit, &scene.tip)? {
            return Ok(false);
        }
        let (token, id, at) = (self.token, landing.landing.clone(), scene.tip.to_string());
        let gone =
            self.decide(|view, context| running::merged(view, token, &id, &at, &at, context))?;
        if let Some(landing) = gone {
            self.door.told(&Progress::Landed { landing: Box::new(landing) });
        }
        Ok(true)
    }

    fn conflict(
        &mut self,
        landing: &Landing,
        scene: &Scene,
        files: Vec<String>,
        alone: &Stacked,
        before: &[Entry],
    ) -> Result<bool, Failure> {
        let target = &scene.target.name;
        if let Stacked::Conflict(files) = alone {
            let why = format!("it conflicts with {target} in {}", files.join(", "));
            let why = Why { files: files.clone(), ..Why::new(Cause::Conflict, why) };
            self.returned(&landing.landing, &why)?;
            return Ok(true);
        }
        // Only with something ahead of it in line: when that has landed, it is known.
        let ahead: Vec<&str> = before.iter().map(|entry| entry.landing.landing.as_str()).collect();
        let why = format!("ahead of it: {}; both change {}", ahead.join(", "), files.join(", "));
        self.held(&landing.landing, &Why { files, ..Why::new(Cause::Conflict, why) })?;
        Ok(false)
    }

    fn footprint(&mut self, landing: &Landing, paths: &[String]) -> Result<Footprint, Failure> {
        let task = landing.task.clone();
        let after = match &task {
            Some(id) => self.look(|view| {
                let task = get::<Task>(view, id.as_str())?;
                Ok(task.map(|task| task.after).unwrap_or_default())
            })?,
            None => Vec::new(),
        };
        let fold = |path: &String| baton_core::pattern::fold(path);
        Ok(Footprint {
            paths: Some(paths.iter().map(fold).collect()),
            task: task.map(|id| id.0),
            after: after.into_iter().map(|id| id.0).collect(),
        })
    }

    /// A person's word, where it changes the rules; and whether it takes back what others landed.
    /// Nothing when it may go on.
    fn asked(
        &mut self,
        scene: &Scene,
        landing: &Landing,
        tip: &Oid,
        paths: &[String],
    ) -> Result<Option<Admitted>, Failure> {
        let guarded = guarded_files(scene, paths);
        if !guarded.is_empty() {
            let (token, id) = (self.token, landing.landing.clone());
            let gated =
                self.decide(|view, context| running::gated(view, token, &id, &guarded, context))?;
            match gated {
                Gated::Approved => {}
                Gated::Over => return Ok(Some(Admitted::Over)),
                Gated::Waits { gate } => {
                    let reason = format!("a person must approve it first: {gate}");
                    self.door.told(&Progress::Held { landing: id, reason });
                    return Ok(Some(Admitted::Held));
                }
                Gated::Denied { gate, why } => {
                    let words = format!("a person said no ({gate}): {why}");
                    self.returned(&id, &Why::new(Cause::Denied, words))?;
                    return Ok(Some(Admitted::Over));
                }
            }
        }
        let undone = match landing.takes_back {
            true => Vec::new(),
            false => self.undone(scene, landing, tip)?,
        };
        if undone.is_empty() {
            return Ok(None);
        }
        let files: BTreeSet<String> = undone.iter().map(|one| one.file.clone()).collect();
        let files: Vec<String> = files.into_iter().collect();
        let first = &undone[0];
        let whose = first.author.as_ref().map(|author| format!(" by {author}")).unwrap_or_default();
        let what = match &first.symbol {
            Some(symbol) => format!("it empties {symbol} in {}", first.file),
            None => format!("it takes back what was landed{whose} in {}", files.join(", ")),
        };
        self.returned(&landing.landing, &Why { files, ..Why::new(Cause::Undo, what) })?;
        Ok(Some(Admitted::Over))
    }

    /// What it takes back of what others landed since its tree was made.
    fn undone(
        &mut self,
        scene: &Scene,
        landing: &Landing,
        tip: &Oid,
    ) -> Result<Vec<Undone>, Failure> {
        let made = trees::Clone::of(self.workspace)?.records(self.workspace)?;
        let made = made.into_iter().find(|tree| tree.branch == landing.branch);
        let known = made.and_then(|tree| Oid::parse(&tree.commit));
        let session = Some(landing.by.session.as_str()).filter(|id| !id.is_empty());
        let task = landing.task.clone();
        let paths = match &task {
            Some(id) => self.look(|view| {
                let task = get::<Task>(view, id.as_str())?;
                Ok(task.map(|task| task.paths).unwrap_or_default())
            })?,
            None => Vec::new(),
        };
        undo::undone(&self.git, tip, known.as_ref(), &scene.tip, session, &paths)
    }
}

/// Files of a branch that change what Baton runs or allows: the policy, and the checks' own files.
fn guarded_files(scene: &Scene, paths: &[String]) -> Vec<String> {
    let mut guarded: BTreeSet<String> = BTreeSet::from([config::FILE_NAME.to_owned()]);
    for word in scene.checks.iter().flat_map(|check| &check.run) {
        let path = word.strip_prefix("./").unwrap_or(word);
        guarded.insert(path.to_owned());
    }
    paths.iter().filter(|path| guarded.contains(*path)).cloned().collect()
}
