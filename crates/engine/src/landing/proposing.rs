//! Landing where the target is protected: a tested branch is pushed and a request opened for it.
//!
//! Owns that way. Each branch is checked alone upon the target, since what is ahead in line may
//! never be merged. Invariant: it counts as landed only when the target is seen to have it.

use std::path::PathBuf;
use std::time::Duration;

use baton_core::landing::Cause;
use baton_core::landings::{Why, running};
use baton_core::trust;

use super::Progress;
use super::checking::{Bench, Result as Checked};
use super::pool::Came;
use super::runner::{Entry, Round, Run, Scene};
use super::stacking::{Stacked, Stacker};
use crate::committing::may_stop;
use crate::failure::Failure;
use crate::git::Oid;

/// How long opening a request may take.
const REQUEST_SECONDS_MAX: u64 = 120;

impl Run<'_> {
    pub(super) fn propose_each(
        &mut self,
        scene: &Scene,
        entries: &[Entry],
    ) -> Result<Round, Failure> {
        let Some((_, url)) = scene.target.remote.clone() else {
            let why = Why::new(Cause::Offline, "mode = \"pr\" needs a remote, and there is none");
            for entry in entries {
                self.held(&entry.landing.landing, &why)?;
            }
            return Ok(Round::Idle);
        };
        let commands: Vec<trust::Command> = trust::commands(&scene.policy)
            .into_iter()
            .filter(|command| command.what == "queue request")
            .collect();
        let missing = self.look(|view| trust::untrusted(view, &commands))?;
        let mut moved = false;
        for entry in entries {
            let id = entry.landing.landing.clone();
            if !missing.is_empty() {
                let why = "nobody stands for the request command: a person runs baton trust";
                self.held(&id, &Why::new(Cause::Untrusted, why))?;
                continue;
            }
            // Upon the target alone: what is ahead in line may never be merged.
            let stacker = Stacker { git: &self.git, policy: &scene.policy, driver_trusted: false };
            let Stacked::Commit(commit) = stacker.put(&entry.landing, &entry.tip, &scene.tip)?
            else {
                continue;
            };
            if !scene.checks.is_empty() {
                let tree = self.git.tree_of_commit(&commit)?;
                let alone = Entry { commit: commit.clone(), tree: tree.clone(), ..entry.clone() };
                match self.check_alone(scene, &alone)? {
                    None => return Ok(Round::Stopped),
                    Some(Came::Passed) => {}
                    Some(came) => {
                        let why = self.blame(scene, &alone, 0, Some(&came))?;
                        self.returned(&id, &why)?;
                        moved = true;
                        continue;
                    }
                }
            }
            moved |= self.propose(scene, entry, &commit, &url)?;
        }
        Ok(if moved { Round::Moved } else { Round::Idle })
    }

    /// Twice, when it fails the first time.
    fn check_alone(&mut self, scene: &Scene, entry: &Entry) -> Result<Option<Came>, Failure> {
        let mut came = Came::Stopped;
        for _ in 0..2 {
            let mut bench = Bench::new(self.pool.clone())?;
            self.begin(scene, std::slice::from_ref(entry), 1, &mut bench)?;
            let Some(Checked { came: result, .. }) = bench.wait(self)? else { return Ok(None) };
            came = result?;
            if !matches!(came, Came::Failed { .. }) {
                break;
            }
        }
        Ok(Some(came))
    }

    fn propose(
        &mut self,
        scene: &Scene,
        entry: &Entry,
        commit: &Oid,
        url: &str,
    ) -> Result<bool, Failure> {
        let landing = &entry.landing;
        let there = self.git.remote_tip(url, &landing.branch)?;
        if let Err(error) = self.git.push(url, &landing.branch, commit, there.as_ref()) {
            let why = format!("the remote refused the push: {error}");
            self.held(&landing.landing, &Why::new(Cause::Offline, why))?;
            return Ok(false);
        }
        may_stop(self.workspace, "land-proposed");
        let argv = super::request_command(&scene.policy.queue, landing);
        let root: PathBuf = self.workspace.place.root.clone();
        let environment = [
            ("BATON_BRANCH", landing.branch.clone()),
            ("BATON_TARGET", landing.target.clone()),
            ("BATON_LANDING", landing.landing.0.clone()),
            ("BATON_COMMIT", commit.to_string()),
        ];
        let at_most = Duration::from_secs(REQUEST_SECONDS_MAX);
        let came = crate::errand::run(&argv, &root, &environment, "", at_most);
        if !came.well {
            let why = format!("the request could not be opened: {}", came.saw);
            self.held(&landing.landing, &Why::new(Cause::Offline, why))?;
            return Ok(false);
        }
        let (token, id, commit) = (self.token, landing.landing.clone(), commit.to_string());
        self.decide(|view, context| running::proposed(view, token, &id, &commit, context))?;
        self.door.told(&Progress::Proposed { landing: id });
        Ok(true)
    }
}
