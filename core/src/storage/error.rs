//! Why a file of tables can't be had.

use std::io;

/// Why a file can't be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The system said no.
    Io(io::Error),
    /// It is not what it should be: what was found, and what to do.
    Refused(String),
    /// It is a table that this build can't read: damaged, cut short, or of another format.
    Unreadable(String),
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileError::Io(error) => write!(f, "{error}"),
            FileError::Refused(reason) | FileError::Unreadable(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for FileError {}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::Io(error)
    }
}

impl From<rustix::io::Errno> for FileError {
    fn from(error: rustix::io::Errno) -> FileError {
        FileError::Io(error.into())
    }
}

pub(crate) fn refused<T>(reason: impl Into<String>) -> Result<T, FileError> {
    Err(FileError::Refused(reason.into()))
}

pub(super) fn unreadable<T>(reason: impl std::fmt::Display) -> Result<T, FileError> {
    let remedy = "open with `recreate`, or remove it, to start afresh";
    Err(FileError::Unreadable(format!("{reason}; {remedy}")))
}
