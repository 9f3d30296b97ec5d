//! Sleeping until a tree changes.
//!
//! Owns the watch over folders that git keeps files in, and over HEAD, index and branches. A hint
//! and never the truth: what cannot be watched is looked at by the clock. Invariant: when a report
//! was lost, every tree counts as changed.

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::failure::Failure;
use crate::workspace::Workspace;

/// Folders that are watched; of more the clock takes care.
pub const FOLDERS_MAX: usize = 50_000;

/// What changed while one slept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// These trees, and perhaps branches.
    Trees(BTreeSet<PathBuf>),
    /// It cannot be said what.
    Anything,
    Nothing,
}

/// Sleeps on descriptors; an interrupted sleep has nothing ready.
fn sleep(fds: &mut [PollFd<'_>], at_most: Duration) -> std::io::Result<()> {
    let timeout = Timespec {
        tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
pub use linux::Watch;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    use super::{
        BTreeSet, BorrowedFd, Changed, Duration, Errno, FOLDERS_MAX, Failure, PathBuf, PollFd,
        PollFlags, Workspace, sleep,
    };
    use crate::git::Git;
    use crate::trees::Clone;

    /// The folders to watch, each with the tree it belongs to.
    fn folders(workspace: &mut Workspace) -> Result<BTreeMap<PathBuf, Option<PathBuf>>, Failure> {
        let clone = Clone::of(workspace)?;
        let common = &clone.dirs.common_dir;
        let mut found = BTreeMap::new();
        for name in ["refs/heads", "refs/heads/baton", "worktrees"] {
            found.insert(common.join(name), None);
        }
        for tree in crate::trees::looking::all(workspace, &clone)? {
            if !tree.stands() {
                continue;
            }
            let of_tree = Some(tree.path.clone());
            found.extend(tree.admin.iter().map(|admin| (admin.clone(), of_tree.clone())));
            found.insert(tree.path.clone(), of_tree.clone());
            for file in Git::in_tree(&tree.path)?.list_files()? {
                let inner = Path::new(&file).ancestors().skip(1);
                for folder in inner.take_while(|folder| !folder.as_os_str().is_empty()) {
                    if found.insert(tree.path.join(folder), of_tree.clone()).is_some() {
                        break;
                    }
                }
            }
        }
        Ok(found)
    }

    /// A watch over all live trees.
    #[derive(Debug)]
    pub struct Watch {
        inotify: OwnedFd,
        /// By the number of the watch: the tree, or nothing for what all share.
        trees: BTreeMap<i32, Option<PathBuf>>,
    }

    impl Watch {
        pub fn start() -> std::io::Result<Self> {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            Ok(Self { inotify, trees: BTreeMap::new() })
        }

        /// Also watches folders that are new. Those that cannot be are left to the clock.
        pub fn extend(&mut self, workspace: &mut Workspace) -> Result<(), Failure> {
            let flags = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::ATTRIB
                | WatchFlags::ONLYDIR;
            for (folder, tree) in folders(workspace)?.into_iter().take(FOLDERS_MAX) {
                if let Ok(number) = inotify::add_watch(&self.inotify, &folder, flags) {
                    self.trees.insert(number, tree);
                }
            }
            Ok(())
        }

        /// Sleeps until something changes, a descriptor is ready, or the time is over.
        pub fn wait(
            &mut self,
            at_most: Duration,
            also: &[BorrowedFd<'_>],
        ) -> std::io::Result<Changed> {
            let mut fds = vec![PollFd::new(&self.inotify, PollFlags::IN)];
            fds.extend(also.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
            sleep(&mut fds, at_most)?;
            self.drain()
        }

        fn drain(&mut self) -> std::io::Result<Changed> {
            let mut buffer = [MaybeUninit::uninit(); 16_384];
            let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
            let (mut trees, mut shared, mut lost) = (BTreeSet::new(), false, false);
            loop {
                match reader.next() {
                    Ok(event) => {
                        lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                        match self.trees.get(&event.wd()) {
                            Some(Some(tree)) => {
                                trees.insert(tree.clone());
                            }
                            _ => shared = true,
                        }
                    }
                    Err(Errno::WOULDBLOCK) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(match (lost, trees.is_empty() && !shared) {
                (true, _) => Changed::Anything,
                (_, true) => Changed::Nothing,
                _ => Changed::Trees(trees),
            })
        }
    }
}

/// Without inotify the trees are looked at by the clock: kqueue would need unsafe code.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct Watch;

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub fn start() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub fn extend(&mut self, _: &mut Workspace) -> Result<(), Failure> {
        Ok(())
    }

    pub fn wait(&mut self, at_most: Duration, also: &[BorrowedFd<'_>]) -> std::io::Result<Changed> {
        const LOOK_EVERY: Duration = Duration::from_secs(2);
        let mut fds: Vec<PollFd<'_>> =
            also.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        sleep(&mut fds, at_most.min(LOOK_EVERY))?;
        Ok(Changed::Anything)
    }
}
