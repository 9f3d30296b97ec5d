//! Whether a folder is on a disk of this machine.
//!
//! Owns the table of file systems on which SQLite's locks and shared memory cannot be trusted. It
//! refuses to know what is stored. Invariant: what is in the table is refused by name; a file
//! system nobody listed counts as local, since local ones are many and keep coming.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{StatFs, statfs};

/// Test only: pretend that every folder is on this file system (a name in the table below). It
/// can only make Baton refuse, so it needs no marker in the store.
pub const TEST_FILESYSTEM: &str = "BATON_TEST_FILESYSTEM";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Local,
    /// Shared with other kernels, or served by a program.
    Network {
        name: &'static str,
    },
}

#[derive(Debug, thiserror::Error)]
#[error("cannot ask on which file system {} is", path.display())]
pub struct Error {
    pub path: PathBuf,
    #[source]
    pub source: std::io::Error,
}

/// The kind of file system that holds `path`, or would hold it if it is not there yet.
pub fn kind(path: &Path) -> Result<Kind, Error> {
    if let Some(name) = std::env::var(TEST_FILESYSTEM).ok().and_then(|name| listed(&name)) {
        return Ok(Kind::Network { name });
    }
    let failed = |source| Error { path: path.to_path_buf(), source };
    for folder in path.ancestors() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        match statfs(folder) {
            Ok(found) => {
                let name = network(&found);
                return Ok(name.map_or(Kind::Local, |name| Kind::Network { name }));
            }
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
    }
    Err(failed(ErrorKind::NotFound.into()))
}

/// By the magic number that statfs(2) reports. Virtiofs reports itself as fuse.
#[cfg(target_os = "linux")]
const REFUSED: &[(u32, &str)] = &[
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x517b, "smb"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "kafs"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x1983_0326, "beegfs"),
    (0x4750_4653, "gpfs"),
    (0xaad7_aaea, "panfs"),
    (0x2003_0528, "orangefs"),
    (0x6163_6673, "acfs"),
    (0xbeef_dead, "snfs"),
    (0x786f_4256, "vboxsf"),
    (0xbacb_acbc, "vmhgfs"),
    (0x7c7c_6673, "prlfs"),
    (0x5346_4846, "wslfs"),
];

#[cfg(target_os = "linux")]
fn network(found: &StatFs) -> Option<&'static str> {
    // The field's width and sign differ between architectures; the low 32 bits are the number.
    #[expect(clippy::cast_possible_truncation, reason = "magic numbers have 32 bits")]
    let magic = found.f_type as u32;
    REFUSED.iter().find(|(number, _)| *number == magic).map(|(_, name)| *name)
}

#[cfg(target_os = "linux")]
fn listed(wanted: &str) -> Option<&'static str> {
    let wanted = if wanted == "virtiofs" { "fuse" } else { wanted };
    REFUSED.iter().map(|(_, name)| *name).find(|name| *name == wanted)
}

/// By the name that statfs(2) reports there.
#[cfg(not(target_os = "linux"))]
const REFUSED: &[&str] =
    &["nfs", "smbfs", "afpfs", "webdav", "ftp", "fuse", "macfuse", "osxfuse", "9p", "virtiofs"];

#[cfg(not(target_os = "linux"))]
fn network(found: &StatFs) -> Option<&'static str> {
    let name = found.f_fstypename.iter().map(|letter| letter.cast_unsigned());
    let name: Vec<u8> = name.take_while(|letter| *letter != 0).collect();
    listed(std::str::from_utf8(&name).ok()?)
}

#[cfg(not(target_os = "linux"))]
fn listed(wanted: &str) -> Option<&'static str> {
    REFUSED.iter().copied().find(|name| *name == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_is_local_even_before_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kind(folder.path()).unwrap(), Kind::Local);
        assert_eq!(kind(&folder.path().join("not/there")).unwrap(), Kind::Local);
    }

    #[test]
    fn the_shared_ones_are_listed_by_name() {
        for name in ["nfs", "9p", "virtiofs", "fuse"] {
            assert!(listed(name).is_some(), "{name}");
        }
        assert_eq!(listed("ext4"), None);
    }
}
