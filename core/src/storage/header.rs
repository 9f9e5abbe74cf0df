//! The header of a file of tables: how it is made, read and checked, and that of format 1. Where
//! its words lie is in `layout`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::error::{FileError, refused, unreadable};
use super::host::Host;
use super::layout::{MOST_SHAPE, SHAPE_AT, at, file_bytes, header_bytes};
use crate::clock::shared::{ClockWord, Seen};
use crate::table::hash::{Hasher, random_seed};

const MAGIC: u64 = u64::from_le_bytes(*b"TIDEGATE");
/// The version of the layout, and of every word in the tables.
pub const FILE_FORMAT: u64 = 2;
const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;
/// What the probe hash is of: it proves that two builds hash alike, and find keys by the same bits
/// of it.
const PROBE: &[u8] = b"tidegate probe, home by fingerprint";

/// Whether a file with this description could be opened.
pub(super) fn check_shape(shape: &str) -> Result<(), FileError> {
    const LONGEST_SHAPE: usize = MOST_SHAPE as usize;
    match shape.len() {
        0..=LONGEST_SHAPE => Ok(()),
        bytes => refused(format!(
            "its description has {bytes} bytes, and may have {MOST_SHAPE}; use fewer \
             limits, or shorter names"
        )),
    }
}

/// The part of a file before its tables.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) words: [u64; SHAPE_AT / 8],
    pub(super) shape: String,
}

impl Header {
    pub(super) fn new(shape: &str, tables: usize, manual: bool, host: &Host) -> Header {
        let seed = random_seed();
        let header = header_bytes(shape.len());
        let file = file_bytes(header, tables);
        let mut words = [0; SHAPE_AT / 8];
        words[at::MAGIC] = MAGIC;
        words[at::FORMAT] = FILE_FORMAT;
        words[at::BYTE_ORDER] = BYTE_ORDER;
        words[at::HEADER] = header as u64;
        words[at::FILE] = file as u64;
        words[at::SEED] = seed;
        words[at::PROBE] = Hasher::portable(seed).one(PROBE).0;
        words[at::CLOCK_KIND] = u64::from(manual);
        words[at::NAMESPACE] = host.namespace;
        words[at::MADE_AT] = host.wall.saturating_sub(host.now);
        words[at::SHAPE] = shape.len() as u64;
        words[at::CLOCK] = ClockWord::new(0, host.boot).0;
        words[at::SEEN] = Seen::of(host.now).0;
        words[at::BOOT] = host.boot as u64;
        words[at::BOOT + 1] = (host.boot >> 64) as u64;
        let mut header = Header { words, shape: shape.to_string() };
        header.words[at::CHECKSUM] = header.checksum();
        header
    }

    /// The same, of a file that takes the place of one with these words.
    pub(super) fn after(mut self, word: impl Fn(usize) -> u64) -> Header {
        for at in [at::SEED, at::NAMESPACE, at::MADE_AT] {
            self.words[at] = word(at);
        }
        self.words[at::PROBE] = Hasher::portable(word(at::SEED)).one(PROBE).0;
        self.words[at::CHECKSUM] = self.checksum();
        self
    }

    pub(super) fn is_manual(&self) -> bool {
        self.words[at::CLOCK_KIND] == 1
    }

    pub(super) fn checksum(&self) -> u64 {
        let mut bytes: Vec<u8> = Vec::new();
        self.words[..at::CHECKSUM].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(self.shape.as_bytes());
        rapidhash::v3::rapidhash_v3(&bytes)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(self.shape.as_bytes());
        bytes
    }

    /// Reads the header of a file by its descriptor: nothing is mapped before it is checked.
    pub(super) fn read(file: &File) -> Result<Header, FileError> {
        Header::read_as(file, FILE_FORMAT)
    }

    fn read_as(file: &File, format: u64) -> Result<Header, FileError> {
        let length = file.metadata()?.len();
        let mut bytes = [0; SHAPE_AT];
        if length == 0 {
            return unreadable("it holds no table: it is empty, as a loss of power may leave it");
        }
        if length < SHAPE_AT as u64 {
            let found = format!("it has {length} bytes, which is no table of Tidegate's");
            return refused(format!("{found}; remove it, or name another place"));
        }
        file.read_exact_at(&mut bytes, 0)?;
        if bytes == [0; SHAPE_AT] {
            return unreadable("it holds no table: all zeros, as a loss of power may leave it");
        }
        let mut words = [0; SHAPE_AT / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        let shape_bytes = words[at::SHAPE];
        if words[at::MAGIC] != MAGIC {
            return refused("it is no table of Tidegate's; remove it, or name another place");
        }
        if words[at::FORMAT] != format || words[at::BYTE_ORDER] != BYTE_ORDER {
            return unreadable(format!(
                "it is of format {} (this build reads {FILE_FORMAT}), or of a machine with \
                 another byte order",
                words[at::FORMAT]
            ));
        }
        if words[at::FILE] != length || shape_bytes > length - SHAPE_AT as u64 {
            return unreadable(format!(
                "it has {length} bytes, and should have {}: truncated or damaged",
                words[at::FILE]
            ));
        }
        if shape_bytes > MOST_SHAPE {
            return unreadable(format!(
                "its description has {shape_bytes} bytes, and may have {MOST_SHAPE}: damaged"
            ));
        }
        let mut shape = vec![0; shape_bytes as usize];
        file.read_exact_at(&mut shape, SHAPE_AT as u64)?;
        let shape = String::from_utf8_lossy(&shape).into_owned();
        Ok(Header { words, shape })
    }

    pub(super) fn check(&self, host: &Host) -> Result<(), FileError> {
        self.check_by(PROBE, host)
    }

    fn check_by(&self, probe: &[u8], host: &Host) -> Result<(), FileError> {
        let words = &self.words;
        if words[at::CHECKSUM] != self.checksum() {
            return unreadable("its header is damaged");
        }
        if Hasher::portable(words[at::SEED]).one(probe).0 != words[at::PROBE] {
            return refused("this build hashes keys differently; use builds of one version");
        }
        if !self.is_manual() && words[at::NAMESPACE] != host.namespace {
            let message =
                "it was made in another time namespace (another container?), whose clocks differ";
            return refused(format!("{message}; share the namespace, or use a file for each"));
        }
        Ok(())
    }
}

/// The header of a file of format 1, which has no words for the boot id, for eviction and for its
/// users.
#[derive(Debug)]
pub(crate) struct Format1Header(pub(super) Header);

impl Format1Header {
    pub(super) const FORMAT: u64 = 1;

    /// `None` if the file is not of format 1.
    pub(crate) fn read(file: &File, host: &Host) -> Result<Option<Format1Header>, FileError> {
        let mut format = [0; 16];
        if file.metadata()?.len() < SHAPE_AT as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut format, 0)?;
        let [magic, format] = [&format[..8], &format[8..]]
            .map(|bytes| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0));
        if (magic, format) != (MAGIC, Format1Header::FORMAT) {
            return Ok(None);
        }
        let header = Header::read_as(file, Format1Header::FORMAT)?;
        header.check_by(b"tidegate probe", host)?;
        if !ClockWord(header.words[at::CLOCK]).is_sound() {
            return unreadable("its clock is damaged");
        }
        Ok(Some(Format1Header(header)))
    }

    pub(crate) fn shape(&self) -> &str {
        &self.0.shape
    }

    pub(crate) fn is_manual(&self) -> bool {
        self.0.is_manual()
    }

    /// The word of the file with which its tables begin.
    pub(crate) fn tables_at(&self) -> usize {
        self.0.words[at::HEADER] as usize / 8
    }
}
