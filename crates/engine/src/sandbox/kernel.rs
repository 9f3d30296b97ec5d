//! What the kernel is told: Landlock's rules, a network namespace, and no way back.
//!
//! Owns the system calls of a process that confines itself before it becomes a command. Invariant:
//! what is given up here is given up for every child, and nothing in this file can take it back.
//! Reading and executing stay free.

use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use rustix::thread::{
    CapabilitySet, UnshareFlags, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_no_new_privs,
};

use super::{Error, Net, Spec};

/// Below it a file can be emptied although it cannot be written.
const NEEDED: ABI = ABI::V3;
/// Held as well where the kernel can: ioctl on devices, signals to others, abstract sockets.
const WANTED: ABI = ABI::V6;

/// Devices that every program may write. Shared memory (`/dev/shm`) is not among them: others keep
/// theirs there.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// With these root would find its way around what is held here.
const GIVEN_UP: [CapabilitySet; 14] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::SYS_CHROOT,
    CapabilitySet::SYSLOG,
    CapabilitySet::MKNOD,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::MAC_ADMIN,
    CapabilitySet::BPF,
    CapabilitySet::PERFMON,
];

/// Whether this kernel can hold everything that is needed.
pub(super) fn supported() -> Result<(), Error> {
    ruleset(false).map(|_| ()).map_err(|_| Error::NoLandlock)
}

/// Confines this process. Answers whether everything is held.
pub(super) fn confine(spec: &Spec) -> Result<bool, Error> {
    if spec.net != Net::All {
        leave_the_network(spec.net)?;
    }
    let not = |why: String| Error::NotConfined { why };
    give_up_capabilities().map_err(|error| not(error.to_string()))?;
    set_no_new_privs(true).map_err(|error| not(error.to_string()))?;
    let held = hold(spec).map_err(|error| not(error.to_string()))?;
    match held {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(true),
        RulesetStatus::NotEnforced if spec.best_effort => Ok(false),
        RulesetStatus::NotEnforced => Err(Error::NoLandlock),
    }
}

fn ruleset(best_effort: bool) -> Result<landlock::RulesetCreated, RulesetError> {
    let level = match best_effort {
        true => CompatLevel::BestEffort,
        false => CompatLevel::HardRequirement,
    };
    Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_write(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()
}

fn hold(spec: &Spec) -> Result<RulesetStatus, RulesetError> {
    let devices = DEVICES.iter().map(PathBuf::from);
    let open = spec.writable.iter().cloned().chain(devices);
    let restricted = ruleset(spec.best_effort)?
        .add_rules(path_beneath_rules(open, AccessFs::from_write(WANTED)))?
        .restrict_self()?;
    Ok(restricted.ruleset)
}

/// What a process that becomes a program gets as root is bounded here.
fn give_up_capabilities() -> rustix::io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for capability in GIVEN_UP {
        // Older kernels do not know all of them.
        if capability_is_in_bounding_set(capability).unwrap_or(false) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
}

/// A network of its own, with nothing in it but a loopback that is down.
fn leave_the_network(net: Net) -> Result<(), Error> {
    let no = |doing: &str, error: std::io::Error| Error::NoNamespace {
        why: format!("{doing}: {error}"),
    };
    let root = rustix::process::geteuid().is_root();
    if !(root && unshare(UnshareFlags::NEWNET).is_ok()) {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)
            .map_err(|error| no("the kernel forbids it", error.into()))?;
        let (user, group) = (user.as_raw(), group.as_raw());
        for (file, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ] {
            match std::fs::write(format!("/proc/self/{file}"), text) {
                // Within another sandbox, whose Landlock says no: it goes without a name for its
                // user there.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::ACCESS) => {}
                written => written.map_err(|error| no(file, error))?,
            }
        }
    }
    match net {
        Net::Loopback => loopback_up().map_err(|error| no("loopback stays down", error.into())),
        Net::None | Net::All => Ok(()),
    }
}

#[expect(
    deprecated,
    reason = "it is deprecated for what it does to descriptors of other threads, with a flag that \
              is not used here, and in favour of an unsafe function"
)]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Asks the kernel over its route socket to raise interface 1, which is a namespace's loopback.
fn loopback_up() -> rustix::io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ANSWER: u16 = 0x1 | 0x4;
    const INTERFACE_UP: u32 = 0x1;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&NEW_LINK.to_ne_bytes());
    message.extend_from_slice(&REQUEST_AND_ANSWER.to_ne_bytes());
    message.extend_from_slice(&[0; 8]); // sequence and sender
    message.extend_from_slice(&[0; 4]); // family and kind: any
    message.extend_from_slice(&1_i32.to_ne_bytes());
    message.extend_from_slice(&INTERFACE_UP.to_ne_bytes());
    message.extend_from_slice(&INTERFACE_UP.to_ne_bytes()); // which flags are meant
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0_u8; 64];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // A header of 16 bytes, then the error, negative, or zero.
    let code = answer.get(16..20).filter(|_| length >= 20);
    let code = code.and_then(|bytes| bytes.try_into().ok()).map_or(-1, i32::from_ne_bytes);
    match code {
        0 => Ok(()),
        code => Err(Errno::from_raw_os_error(code.saturating_neg())),
    }
}
