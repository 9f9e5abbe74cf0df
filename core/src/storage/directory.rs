//! A folder whose files only its owner, or its group, may write.
//!
//! The folder is opened once and checked. From then on its files are opened by name from that
//! descriptor: no process can put another folder in its place meanwhile. No link is followed, and
//! no file is believed before its kind, owner and mode were checked.
//!
//! | access | the folder | its files |
//! |---|---|---|
//! | plain | is this user's, and no other user may write it | as the folder; made with mode 0600 |
//! | `group` | is this user's or its group's; others may not write it | of its group; 0660 |
//! | `as_owner`, for root | is another user's; no part of its path is a link | are that user's |
//!
//! **New files** are built whole before they get their name: written, synced to the disk, linked,
//! and then the folder is synced. So a loss of power leaves a whole file or none. While such a file
//! is built it has no name at all (`O_TMPFILE`), or a name that no other file has (`NAME.<16
//! digits>.tmp`) and an exclusive `flock`. The kernel drops the lock with the process, which tells
//! [`Directory::sweep`] what to remove.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use crate::storage::error::{FileError, refused};
use crate::table::hash::random_seed;

const FILE_FLAGS: OFlags =
    OFlags::RDWR.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);
const FOLDER_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
/// Digits that make the name of a temporary file its own.
const DIGITS: usize = 16;
const TEMPORARY: &str = ".tmp";

/// Who may share a folder with this user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The folder's group may read and write it and its files.
    pub group: bool,
    /// Root may open another user's folder; every file in it stays that user's.
    pub as_owner: bool,
}

/// A folder that was checked.
#[derive(Debug)]
pub struct Directory {
    folder: Arc<OwnedFd>,
    /// Whom files belong to.
    user: u32,
    /// The group that shares the folder.
    group: Option<u32>,
    /// User and group that new files are given to, where root makes them for another user.
    heir: Option<(u32, u32)>,
    /// Folders that were made to have this one: itself first, then those above it.
    made: Vec<PathBuf>,
}

impl Directory {
    /// Opens a folder, and makes it (and those above it) if it is not there.
    ///
    /// # Errors
    /// If it can't be made, or is not one that `access` allows.
    pub fn make(path: &Path, access: Access) -> Result<Directory, FileError> {
        let path: PathBuf = path.components().collect();
        match Directory::open(&path, access) {
            Err(FileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            known => return known,
        }
        if is_root_as_owner(access) {
            // Root would make it where a link of the owner's leads, and as its own.
            return refused("there is no such folder; its owner has to make it");
        }
        let mut made = Vec::new();
        let opened = make_folders(&path, access.group, &mut made)
            .and_then(|()| Directory::open(&path, access));
        match opened {
            Ok(directory) => Ok(Directory { made, ..directory }),
            Err(error) => {
                remove_folders(&made);
                Err(error)
            }
        }
    }

    /// Removes the folders that were made to have this one, if nothing is in them.
    pub fn abandon(&self) {
        let at = |path: &PathBuf| rustix::fs::stat(path).map(|stat| Found::from(stat).place).ok();
        let own = Found::of(&self.folder).map(|found| found.place).ok();
        if self.made.first().is_some_and(|path| at(path) == own) {
            remove_folders(&self.made);
        }
    }

    /// Opens a folder that is there.
    ///
    /// # Errors
    /// If it is not there, or is not one that `access` allows.
    pub fn open(path: &Path, access: Access) -> Result<Directory, FileError> {
        // Without a slash at its end, behind which a link would be followed.
        let path: PathBuf = path.components().collect();
        let folder = open_folder(&path)?;
        let found = Found::of(&folder)?;
        let shared = access.group;
        if found.mode & 0o002 != 0 || (!shared && found.mode & 0o020 != 0) {
            let remedy = match shared {
                true => "make it 770",
                false => "make it 700, or open it with `group: true` to share it with its group",
            };
            return refused(format!(
                "others may write this folder (mode {:o}); {remedy}",
                found.mode
            ));
        }
        let me = rustix::process::geteuid().as_raw();
        let group = shared.then_some(found.group);
        if shared && has_list(&folder) {
            return refused("it has an access control list, which may let others in; remove it");
        }
        if is_root_as_owner(access) {
            check_path(&path, &found)?;
        }
        let is_ours = found.user == me || (me == 0 && access.as_owner);
        if shared && is_ours && found.mode & 0o070 != 0o070 {
            return refused(format!(
                "this folder is not shared with its group {} (mode {:o}); make it 770 and its \
                 files 660,                  or open it without `group: true`",
                found.group, found.mode
            ));
        }
        let folder = Arc::new(folder);
        if found.user == me {
            return Ok(Directory { folder, user: me, group, heir: None, made: Vec::new() });
        }
        if me == 0 && access.as_owner {
            let heir = Some((found.user, found.group));
            return Ok(Directory { folder, user: found.user, group, heir, made: Vec::new() });
        }
        if me != 0 && shared && found.mode & 0o070 == 0o070 && is_member(found.group)? {
            return Ok(Directory { folder, user: me, group, heir: None, made: Vec::new() });
        }
        refused(found.not_mine(me, shared))
    }

    /// A folder that any user may write. Its files are checked all the same.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn unchecked(path: &Path) -> Result<Directory, FileError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = FOLDER_FLAGS.difference(OFlags::NOFOLLOW);
        let folder = Arc::new(rustix::fs::open(path, flags, Mode::empty())?);
        let user = rustix::process::geteuid().as_raw();
        Ok(Directory { folder, user, group: None, heir: None, made: Vec::new() })
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// The name that an open file has, or is about to get.
    pub(crate) fn entry(&self, name: &str, file: &File) -> io::Result<Entry> {
        let (folder, name) = (self.folder.clone(), name.to_string());
        Ok(Entry { folder, name, place: Found::of(file)?.place })
    }

    /// Opens a file to be read and written; `None` if there is none of that name.
    ///
    /// # Errors
    /// If it is a link, not a regular file, or others may write it.
    pub fn open_file(&self, name: &str) -> Result<Option<File>, FileError> {
        let file = match rustix::fs::openat(&self.folder, name, FILE_FLAGS, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return refused("it is a symbolic link; name the file itself"),
            Err(error) => return Err(error.into()),
        };
        self.check(&file)?;
        Ok(Some(file))
    }

    /// Opens a file as [`Directory::open_file`] does, and makes an empty one if there is none.
    ///
    /// # Errors
    /// As [`Directory::open_file`]; and if it can't be made.
    pub fn open_or_make(&self, name: &str) -> Result<File, FileError> {
        loop {
            if let Some(file) = self.open_file(name)? {
                return Ok(file);
            }
            self.temporary(name)?.publish(name)?;
        }
    }

    /// Puts a new file in place of an old one. Readers see one or the other, whole; so does a
    /// reader after a loss of power.
    ///
    /// # Errors
    /// If it can't be written. Then the old one stands.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        use std::io::Write;
        let mut temporary = Temporary::named(self, name)?;
        temporary.file.write_all(bytes)?;
        temporary.replace(name)
    }

    /// Removes a file; false if there is none of that name.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn remove(&self, name: &str) -> Result<bool, FileError> {
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The names of what is in it.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = rustix::fs::Dir::read_from(&self.folder)?;
        let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| {
            Ok(entry?.file_name().to_string_lossy().into_owned())
        };
        let names: io::Result<Vec<String>> = entries.map(name).collect();
        Ok(names?.into_iter().filter(|name| name != "." && name != "..").collect())
    }

    /// Whether users other than its own, and its group where that shares it, may read files in it.
    pub fn is_exposed(&self) -> bool {
        // A file whose name is known can be read by any user who may pass the folder.
        let (pass, read) = if self.group.is_some() { (0o001, 0o004) } else { (0o011, 0o044) };
        let has = |name: &str, bits: u32| {
            let stat = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| stat.st_mode & bits != 0)
        };
        has(".", pass) && self.names().is_ok_and(|names| names.iter().any(|name| has(name, read)))
    }

    /// Whether it was removed since it was opened.
    pub fn is_gone(&self) -> bool {
        rustix::fs::fstat(&self.folder).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Removes what makers that were killed have left. What a maker still builds is locked, and
    /// stays.
    pub fn sweep(&self) {
        let names = self.names().unwrap_or_default();
        for name in names.iter().filter(|name| is_temporary(name)) {
            let Ok(file) = rustix::fs::openat(&self.folder, name, FILE_FLAGS, Mode::empty()) else {
                continue;
            };
            let is_file = Found::of(&file).is_ok_and(|found| found.kind == FileType::RegularFile);
            if is_file && is_locked(&file) {
                let _ = self.remove(name);
            }
        }
    }

    /// A new file without a name.
    pub(crate) fn temporary(&self, name: &str) -> Result<Temporary<'_>, FileError> {
        match Temporary::unnamed(self)? {
            Some(temporary) => Ok(temporary),
            None => Temporary::named(self, name),
        }
    }

    /// A regular file of the right owner, that no other user may write.
    fn check(&self, file: &File) -> Result<(), FileError> {
        let found = Found::of(file)?;
        if found.kind != FileType::RegularFile {
            return refused("it is not a regular file; name another place");
        }
        let is_shared = self.group == Some(found.group);
        let others = if is_shared { 0o002 } else { 0o022 };
        if found.mode & others != 0 {
            return refused(format!(
                "others may write it (mode {:o}); make it {}, or remove it if you don't trust it",
                found.mode,
                if self.group.is_some() { "660, and of the folder's group" } else { "600" },
            ));
        }
        if self.group.is_some() && (!is_shared || found.mode & 0o060 != 0o060) {
            return refused(format!(
                "the folder's group may not write it (group {}, mode {:o}); \
                 make it 660, and of the folder's group",
                found.group, found.mode
            ));
        }
        if found.user != self.user && !is_shared {
            return refused(format!(
                "it belongs to user {}, not to {}; give it to that user, or \
                 remove it if you don't trust it",
                found.user, self.user
            ));
        }
        Ok(())
    }

    /// Gives a new file the owner and the mode that files here have.
    fn settle(&self, file: &File) -> Result<(), FileError> {
        let found = Found::of(file)?;
        let mode = if self.group.is_some() { 0o660 } else { 0o600 };
        if let Some((user, group)) = self.heir {
            rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        } else if let Some(group) = self.group.filter(|group| *group != found.group) {
            match rustix::fs::fchown(file, None, Some(Gid::from_raw(group))) {
                Ok(()) => {}
                Err(Errno::PERM) => {
                    return refused(format!(
                        "this user may not give files to the folder's group {group}; put \
                         the user in that group"
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if self.group.is_some() {
            drop_lists(file)?;
        }
        if found.mode != mode {
            rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.folder)
    }
}

/// A file's name in its folder.
#[derive(Debug)]
pub(crate) struct Entry {
    folder: Arc<OwnedFd>,
    name: String,
    /// Device and inode of the file.
    place: (u64, u64),
}

impl Entry {
    /// Whether the name is gone, or is another file's. The file may have other names.
    pub(crate) fn is_lost(&self) -> bool {
        match rustix::fs::statat(&*self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Found::from(stat).place != self.place,
            Err(error) => error == Errno::NOENT,
        }
    }
}

/// What the kernel says of a file or folder.
struct Found {
    kind: FileType,
    user: u32,
    group: u32,
    mode: u32,
    links: u64,
    place: (u64, u64),
}

impl From<rustix::fs::Stat> for Found {
    #[allow(clippy::unnecessary_cast, reason = "the types differ from machine to machine")]
    fn from(stat: rustix::fs::Stat) -> Found {
        Found {
            kind: FileType::from_raw_mode(stat.st_mode),
            user: stat.st_uid,
            group: stat.st_gid,
            mode: stat.st_mode & 0o777,
            links: stat.st_nlink as u64,
            place: (stat.st_dev as u64, stat.st_ino as u64),
        }
    }
}

impl Found {
    fn of(file: impl AsFd) -> io::Result<Found> {
        Ok(Found::from(rustix::fs::fstat(file)?))
    }

    /// Why a folder is refused, and what to do.
    fn not_mine(&self, me: u32, shared: bool) -> String {
        let (user, group) = (self.user, self.group);
        match (me, shared) {
            (0, _) => format!(
                "this folder belongs to user {user}, who could not open what root writes there; \
                 run as that user, or open it `as_owner`"
            ),
            (_, true) => format!(
                "this folder belongs to user {user} and is not shared with user {me}; \
                 make it 770 and put {me} in its group {group}, or name another folder"
            ),
            (_, false) => format!(
                "this folder belongs to user {user}, not to {me}; run as that user, name \
                 another folder,                  or share it with `group: true`"
            ),
        }
    }
}

fn is_member(group: u32) -> io::Result<bool> {
    let own = rustix::process::getegid().as_raw();
    Ok(own == group || rustix::process::getgroups()?.iter().any(|one| one.as_raw() == group))
}

fn parent_of(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

fn open_folder(path: &Path) -> Result<OwnedFd, FileError> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match rustix::fs::open(path, FOLDER_FLAGS, Mode::empty()) {
        Ok(folder) => Ok(folder),
        Err(Errno::NOTDIR | Errno::LOOP) if path.is_symlink() => {
            refused("this is a symbolic link; name the folder itself")
        }
        Err(Errno::NOTDIR) => refused("this is not a folder; name another place"),
        Err(error) => Err(error.into()),
    }
}

/// Makes a folder, for good; false if it is there.
fn make_folder(path: &Path, mode: Mode) -> Result<bool, FileError> {
    match rustix::fs::mkdir(path, mode) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    // One that may not be read can't be synced either.
    if let Ok(parent) = Directory::unchecked(parent_of(path).unwrap_or(Path::new("."))) {
        parent.sync()?;
    }
    Ok(true)
}

fn is_root_as_owner(access: Access) -> bool {
    access.as_owner && rustix::process::geteuid().is_root()
}

const LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

/// Whether an access control list says more than the mode.
fn has_list(file: impl AsFd) -> bool {
    rustix::fs::fgetxattr(file, LISTS[0], &mut [0u8; 0]).is_ok()
}

/// Removes access control lists that the folder above has left: to widen the mode would widen them,
/// too.
fn drop_lists(file: impl AsFd) -> io::Result<()> {
    for list in LISTS {
        match rustix::fs::fremovexattr(&file, list) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Lets the group into a folder that was just made, and is not another that was put in its place.
fn share_new_folder(path: &Path, mode: Mode) -> Result<(), FileError> {
    let folder = open_folder(path)?;
    let found = Found::of(&folder)?;
    let mine = found.user == rustix::process::geteuid().as_raw() && found.mode & 0o077 == 0;
    let mut entries = rustix::fs::Dir::read_from(&folder)?;
    let is_empty = entries
        .all(|entry| entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")));
    if !mine || !is_empty {
        return refused("another folder was put in the place of the one just made");
    }
    drop_lists(&folder)?;
    // The mode of `mkdir` is cut by the umask. What is made in this folder has its group if it came
    // so.
    let inherits = Mode::from_raw_mode(rustix::fs::fstat(&folder)?.st_mode) & Mode::SGID;
    Ok(rustix::fs::fchmod(folder, mode | inherits)?)
}

/// Makes a folder, and those above it that are missing.
fn make_folders(path: &Path, group: bool, made: &mut Vec<PathBuf>) -> Result<(), FileError> {
    if let Some(parent) = parent_of(path) {
        make_parents(parent, group, made)?;
    }
    make_new_folder(path, Mode::RWXU, group.then_some(Mode::RWXU | Mode::RWXG), made)
}

/// Those above a folder of a group let the group pass, whatever the umask is.
fn make_parents(path: &Path, group: bool, made: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let pass = Mode::RWXU | Mode::RGRP | Mode::XGRP;
    let (mode, shared) = (pass | Mode::ROTH | Mode::XOTH, group.then_some(pass));
    match (make_new_folder(path, mode, shared, made), parent_of(path)) {
        (Err(FileError::Io(error)), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make_parents(parent, group, made)?;
            make_new_folder(path, mode, shared, made)
        }
        (known, _) => known,
    }
}

/// Makes a folder if it is not there. One that is `shared` is no other user's before it has that
/// mode.
fn make_new_folder(
    path: &Path,
    mode: Mode,
    shared: Option<Mode>,
    made: &mut Vec<PathBuf>,
) -> Result<(), FileError> {
    if make_folder(path, if shared.is_some() { Mode::RWXU } else { mode })? {
        made.insert(0, path.to_path_buf());
        shared.map_or(Ok(()), |shared| share_new_folder(path, shared))?;
    }
    Ok(())
}

/// Removes folders that were just made, from the lowest up; one that is in use stays.
fn remove_folders(made: &[PathBuf]) {
    let _ = made.iter().try_for_each(rustix::fs::rmdir);
}

/// Whether a path leads to what was found without any link: its owner could turn a link elsewhere.
fn check_path(path: &Path, found: &Found) -> Result<(), FileError> {
    let path = std::path::absolute(path)?;
    let flags = FOLDER_FLAGS | OFlags::PATH;
    let mut folder = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
    for part in path.components() {
        if let Component::Normal(name) = part {
            folder = match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
                Ok(folder) => folder,
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    return refused("a part of its path is a symbolic link; name its real path");
                }
                Err(error) => return Err(error.into()),
            };
        } else if part == Component::ParentDir {
            return refused("its path has a `..`; name its real path");
        }
    }
    match Found::of(&folder)?.place == found.place {
        true => Ok(()),
        false => refused("another folder was put in its place just now; try again"),
    }
}

fn is_temporary(name: &str) -> bool {
    let digits = |text: &str| {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        text.len() == DIGITS && text.bytes().all(hex)
    };
    let stem = name.strip_suffix(TEMPORARY);
    stem.and_then(|stem| stem.rsplit_once('.')).is_some_and(|(_, last)| digits(last))
}

/// Takes the lock of a maker, or of a sweeper that finds no maker.
fn is_locked(file: impl AsFd) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// A file that does not have its name yet; gone if it never gets one.
pub(crate) struct Temporary<'a> {
    pub(crate) file: File,
    directory: &'a Directory,
    /// Where the system can't do without one.
    name: Option<String>,
    /// Whether a maker's lock is held, as on a file that has a name of its own.
    locked: Cell<bool>,
}

impl<'a> Temporary<'a> {
    /// Without a name; `None` where the filesystem has no such files, or they could not be linked.
    fn unnamed(directory: &'a Directory) -> Result<Option<Temporary<'a>>, FileError> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = match rustix::fs::openat(&directory.folder, ".", flags, mode) {
            Ok(file) => File::from(file),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => return Ok(None),
            Err(error) => return Err(directory.explain(error)),
        };
        if !is_in_proc(&file) {
            return Ok(None);
        }
        directory.settle(&file)?;
        Ok(Some(Temporary { file, directory, name: None, locked: Cell::new(false) }))
    }

    /// Under a name that no other file has. (A process's number would not do: in containers many
    /// have the same.)
    pub(crate) fn named(directory: &'a Directory, stem: &str) -> Result<Temporary<'a>, FileError> {
        let flags = FILE_FLAGS | OFlags::CREATE | OFlags::EXCL;
        loop {
            let name = format!("{stem}.{:016x}{TEMPORARY}", random_seed());
            let opened =
                rustix::fs::openat(&directory.folder, &name, flags, Mode::RUSR | Mode::WUSR);
            let file = File::from(opened.map_err(|error| directory.explain(error))?);
            let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
            // A sweeper may have come before the lock. It found no maker, and removes the file.
            if lock == Err(Errno::WOULDBLOCK) || Found::of(&file)?.links == 0 {
                continue;
            }
            let locked = Cell::new(lock.is_ok());
            let temporary = Temporary { file, directory, name: Some(name), locked };
            directory.settle(&temporary.file)?;
            return Ok(temporary);
        }
    }

    /// Gives the file its name, for good. False if another has it.
    pub(crate) fn publish(&self, name: &str) -> Result<bool, FileError> {
        sync_file(&self.file)?;
        let folder = &self.directory.folder;
        let linked = match &self.name {
            Some(own) => link(folder, own, name),
            None => {
                let own = in_proc(&self.file);
                rustix::fs::linkat(CWD, own, folder, name, AtFlags::SYMLINK_FOLLOW)
            }
        };
        match linked {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(false),
            Err(error) => return Err(self.directory.explain(error)),
        }
        #[cfg(test)]
        steps::note(|| steps::SyncStep::Named(steps::bytes_of(&self.file)));
        self.unlock();
        self.directory.sync()?;
        Ok(true)
    }

    /// Gives the maker's lock back. By name, not by closing: a child that was forked meanwhile has
    /// the file open too.
    fn unlock(&self) {
        if self.locked.replace(false) {
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }

    /// Gives the file its name, for good, even if another file has it.
    pub(crate) fn replace(self, name: &str) -> Result<(), FileError> {
        self.replace_and(name, || ())
    }

    /// The same. `then` is called once the file has the name, before the folder is synced.
    pub(crate) fn replace_and(mut self, name: &str, then: impl FnOnce()) -> Result<(), FileError> {
        sync_file(&self.file)?;
        let folder = &self.directory.folder;
        if let Some(own) = &self.name {
            let renamed = rustix::fs::renameat(folder, own, folder, name);
            renamed.map_err(|error| self.directory.explain(error))?;
        }
        self.name = None;
        then();
        #[cfg(test)]
        steps::note(|| steps::SyncStep::Named(steps::bytes_of(&self.file)));
        Ok(self.directory.sync()?)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = self.directory.remove(name);
        }
        self.unlock();
    }
}

impl Directory {
    fn explain(&self, error: Errno) -> FileError {
        match self.is_gone() {
            true => FileError::Refused(
                "the folder was removed while it was in use; make the limiter anew".to_string(),
            ),
            false => error.into(),
        }
    }
}

/// Moves a file to a name that no other has. Where the filesystem can't, it has both names for a
/// while.
fn link(folder: &OwnedFd, own: &str, name: &str) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(folder, own, folder, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(folder, own, folder, name, AtFlags::empty())
        }
        done => done,
    }
}

fn in_proc(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Whether the kernel shows a descriptor under /proc, by which alone a file without a name is
/// linked.
fn is_in_proc(file: &File) -> bool {
    let place = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
    let seen = std::fs::metadata(in_proc(file)).map(place);
    seen.is_ok_and(|seen| file.metadata().is_ok_and(|meta| place(meta) == seen))
}

fn sync_file(file: &File) -> io::Result<()> {
    file.sync_all()?;
    #[cfg(test)]
    steps::note(|| steps::SyncStep::Synced(steps::bytes_of(file)));
    Ok(())
}

/// Some filesystems can't sync a folder, and need not.
fn sync_folder(folder: &OwnedFd) -> io::Result<()> {
    #[cfg(test)]
    steps::note(|| steps::SyncStep::FolderSynced);
    match rustix::fs::fsync(folder) {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What tests see of the order in which a file is written, synced and named.
#[cfg(test)]
pub(crate) mod steps {
    use std::cell::RefCell;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[derive(Debug, PartialEq, Eq)]
    pub(crate) enum SyncStep {
        /// The file is on the disk, with these bytes.
        Synced(Vec<u8>),
        /// The file has its name, and these bytes.
        Named(Vec<u8>),
        FolderSynced,
    }

    thread_local! {
        static STEPS: RefCell<Option<Vec<SyncStep>>> = const { RefCell::new(None) };
    }

    pub(super) fn note(step: impl FnOnce() -> SyncStep) {
        STEPS.with_borrow_mut(|steps| {
            if let Some(steps) = steps {
                steps.push(step());
            }
        });
    }

    pub(super) fn bytes_of(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// The steps of this thread's work.
    pub(crate) fn of<R>(work: impl FnOnce() -> R) -> (R, Vec<SyncStep>) {
        STEPS.set(Some(Vec::new()));
        let result = work();
        (result, STEPS.take().unwrap_or_default())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    /// A new file that only its owner may write.
    pub(crate) fn private_file(path: &Path) -> File {
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap()
    }

    fn new_folder(name: &str) -> (PathBuf, Directory) {
        let name = format!("tidegate-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        let directory = Directory::make(&path, Access::default()).unwrap();
        (path, directory)
    }

    #[test]
    fn where_files_need_a_name_they_have_one_each_and_it_goes() {
        let (path, folder) = new_folder("named");
        let [a, b] = [(); 2].map(|()| Temporary::named(&folder, "a.table").unwrap());
        assert_eq!(folder.names().unwrap().len(), 2);
        assert!(a.publish("a.table").unwrap(), "the first has the name");
        assert!(!b.publish("a.table").unwrap());
        drop((a, b));
        assert_eq!(folder.names().unwrap(), ["a.table"]);
        std::fs::remove_dir_all(path).unwrap();
    }

    /// The lock file of a rule is made so where there is no `O_TMPFILE`: nobody could take it any
    /// more.
    #[test]
    fn a_child_that_was_forked_meanwhile_does_not_keep_a_makers_lock() {
        let (path, folder) = new_folder("forked");
        let file = Temporary::named(&folder, "a.lock").unwrap();
        // What a fork copies: another descriptor of the same open file.
        let childs = file.file.try_clone().unwrap();
        assert!(file.publish("a.lock").unwrap());
        drop(file);
        assert!(is_locked(folder.open_file("a.lock").unwrap().unwrap()), "it can be locked");
        drop(childs);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_folder_that_was_made_for_nothing_goes_with_those_above_it() {
        let (path, _) = new_folder("abandoned");
        let at = |name: &str| path.join(name);
        let make = |name: &str| Directory::make(&at(name), Access::default()).unwrap();
        make("a/b/c").abandon();
        assert!(!at("a").exists() && path.exists());
        let used = make("a/b/c");
        drop(private_file(&at("a/b/c/file")));
        used.abandon();
        assert!(at("a/b/c/file").exists());
        make("a/other/c").abandon();
        assert!(!at("a/other").exists() && at("a/b").exists(), "what was there stays");
        make("a/b").abandon();
        assert!(at("a/b").exists());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_sweep_removes_what_killed_makers_left_and_nothing_else() {
        let (path, folder) = new_folder("swept");
        let building = Temporary::named(&folder, "a.table").unwrap();
        let kept = ["a.table", "a.tmp", "a.0123.tmp", "a.table.0123456789ABCDEF.tmp"];
        for name in kept.iter().chain(&["a.changes.0123456789abcdef.tmp", "a.00000000deadbeef.tmp"])
        {
            drop(private_file(&path.join(name)));
        }
        let outside = path.with_extension("outside");
        drop(private_file(&outside));
        let link = path.join("l.0123456789abcdef.tmp");
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        folder.sweep();
        let mut names = folder.names().unwrap();
        names.retain(|name| Some(name) != building.name.as_ref());
        names.sort();
        let mut due = Vec::from(kept.map(str::to_string));
        due.push("l.0123456789abcdef.tmp".to_string());
        due.sort();
        assert_eq!(names, due);
        assert!(building.publish("b.table").unwrap(), "a maker at work is left alone");
        std::fs::remove_file(outside).unwrap();
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_replaced_file_is_on_the_disk_before_it_has_its_name() {
        let (path, folder) = new_folder("replaced");
        for text in ["one", "two"] {
            let ((), steps) = steps::of(|| folder.replace("a.changes", text.as_bytes()).unwrap());
            let bytes = || text.as_bytes().to_vec();
            let due = [
                steps::SyncStep::Synced(bytes()),
                steps::SyncStep::Named(bytes()),
                steps::SyncStep::FolderSynced,
            ];
            assert_eq!(steps, due);
        }
        assert_eq!(folder.names().unwrap(), ["a.changes"]);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn no_link_is_followed() {
        let (path, folder) = new_folder("links");
        let (link, outside) = (path.with_extension("link"), path.with_extension("elsewhere"));
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for name in [link.clone(), PathBuf::from(format!("{}/", link.display()))] {
            let error = Directory::make(&name, Access::default()).unwrap_err().to_string();
            assert!(error.contains("symbolic link"), "{error}");
        }
        drop(private_file(&outside));
        for name in ["a.lock", "a.changes"] {
            std::os::unix::fs::symlink(&outside, path.join(name)).unwrap();
            assert!(folder.open_or_make(name).unwrap_err().to_string().contains("symbolic link"));
        }
        folder.replace("a.changes", b"text").unwrap();
        assert_eq!(std::fs::read(&outside).unwrap(), b"", "the link was replaced, not followed");
        std::fs::remove_file(outside).unwrap();
        std::fs::remove_file(link).unwrap();
        std::fs::remove_dir_all(path).unwrap();
    }
}
