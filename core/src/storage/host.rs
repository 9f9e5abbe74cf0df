//! What the host says about time and files.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use super::error::{FileError, refused};
use crate::clock::{Clock, host_lead, system_now};

/// What the host says about time and files: injected by tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The kernel's id of this boot; 0 if it can't be read.
    pub boot: u128,
    /// The time namespace, whose clocks may have offsets of their own.
    pub namespace: u64,
    /// The wall clock, in nanoseconds since 1970.
    pub wall: u64,
    /// Time since boot, in nanoseconds.
    pub now: u64,
    /// What filesystem files are on, by the kernel's number; none to ask the kernel.
    pub filesystem: Option<u64>,
}

impl Host {
    /// As it is.
    pub fn here() -> Host {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = u128::from_str_radix(&boot.trim().replace('-', ""), 16).unwrap_or(0);
        let namespace = std::fs::metadata("/proc/self/ns/time").map_or(0, |meta| meta.ino());
        let wall = Clock::System.wall().as_nanos() as u64;
        Host { boot, namespace, wall, now: system_now() + host_lead(), filesystem: None }
    }
}

/// Filesystems of other hosts, by the kernel's numbers: what is mapped there is not shared, or not
/// at once. FUSE is among them, since the kernel does not say what is behind it.
pub(super) const REMOTE: [(u64, &str); 24] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE (sshfs, gluster, virtiofs or the like)"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x786f_4256, "vboxsf"),
    (0xbacb_acbc, "vmhgfs"),
    (0x7c7c_6673, "prl_fs"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x2003_0528, "OrangeFS"),
    (0x1983_0326, "BeeGFS"),
    (0xaad7_aaea, "PanFS"),
    (0x6163_6673, "ACFS"),
    (0x0131_11a8, "IBRIX"),
    (0xbeef_dead, "SNFS"),
    (0x564c, "NCP"),
];

pub(super) fn check_filesystem(file: impl AsFd, host: &Host) -> Result<(), FileError> {
    let kind = match host.filesystem {
        Some(kind) => kind,
        None => rustix::fs::fstatfs(file)?.f_type as u64 & 0xffff_ffff,
    };
    match REMOTE.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => refused(format!(
            "it is on {name}, a network filesystem; processes on one host need a local disk"
        )),
        None => Ok(()),
    }
}
