//! The metadata of entries, in the plain form of nearly every entry.

use crate::CHECKSUM_MARK;
use crate::varints::{put_field, put_varint, take_bytes, take_small, take_varint, varint_bytes};
use crc32c::{crc32c, crc32c_append};

/// The parts of an entry that starts with its checksum.
pub struct Parts<'a> {
    pub metadata: &'a [u8],
    pub payload: &'a [u8],
}

/// Returns None for an entry that starts with something else than its checksum, or is cut off.
pub fn parts(entry: &[u8]) -> Option<Parts<'_>> {
    let (_checksum, rest) = entry.strip_prefix(&CHECKSUM_MARK)?.split_first_chunk::<4>()?;
    let (size, rest) = rest.split_first_chunk::<4>()?;
    let (metadata, payload) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*size)).ok()?)?;
    Some(Parts { metadata, payload })
}

/// Returns true if an entry starts with a checksum that matches its bytes.
pub fn fits_its_checksum(entry: &[u8]) -> bool {
    let Some((expected, sealed)) = entry.strip_prefix(&CHECKSUM_MARK).and_then(|rest| rest.split_first_chunk()) else {
        return false;
    };
    crc32c(sealed) == u32::from_be_bytes(*expected)
}

/// The fields read from plain metadata. The last one of a repeated field counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Plain<'a> {
    pub producer_name: &'a [u8],
    pub sequence_id: u64,
    pub highest_sequence_id: Option<u64>,
    /// None if the entry is a single message.
    pub batch_messages: Option<u64>,
    pub partition_key: Option<&'a [u8]>,
    pub ordering_key: &'a [u8],
    pub is_key_base64: bool,
    pub schema_version: Option<&'a [u8]>,
    /// True if it came from another cluster, or names its target clusters.
    pub is_replicated: bool,
    pub is_transactional: bool,
}

impl Plain<'_> {
    /// The highest sequence id; None if one is negative, as Java reads it.
    #[must_use]
    pub fn last_sequence_id(&self) -> Option<u64> {
        let last = self.highest_sequence_id.unwrap_or(0).max(self.sequence_id);
        (last >> 63 == 0).then_some(last)
    }
}

/// Returns None for metadata that is damaged, lacks a required field, or has rare fields such as those of markers,
/// chunks and encryption.
#[must_use]
pub fn plain(mut metadata: &[u8]) -> Option<Plain<'_>> {
    let (mut found, mut required) = (Plain::default(), 0);
    while !metadata.is_empty() {
        let tag = take_small(&mut metadata)?;
        if tag & 7 == 2 {
            let bytes = take_bytes(&mut metadata)?;
            match tag {
                0x0a => {
                    found.producer_name = bytes;
                    required |= 1;
                }
                0x22 => plain_property(bytes)?,
                0x2a | 0x3a => found.is_replicated = true, // replicated_from, replicate_to
                0x32 => found.partition_key = Some(bytes),
                0x82 => found.schema_version = Some(bytes),
                0x92 => found.ordering_key = bytes,
                _ => return None,
            }
            continue;
        }
        let number = take_varint(&mut metadata)?;
        match tag {
            0x10 => {
                found.sequence_id = number;
                required |= 2;
            }
            0x18 => required |= 4, // publish_time
            0x58 => found.batch_messages = (number != 0 && number >> 31 == 0).then_some(Some(number))?,
            0x88 => found.is_key_base64 = number != 0,
            0xc0 => found.highest_sequence_id = Some(number),
            0xb0 | 0xb8 => found.is_transactional = true,
            0x40 | 0x48 | 0x60 | 0x98 | 0xc8 => {} // compression, its size, event and delivery time, null value
            _ => return None,
        }
    }
    (required == 7).then_some(found)
}

/// Returns the producer name of a plain entry, and its highest sequence id.
#[must_use]
pub fn last_of(entry: &[u8]) -> Option<(&str, u64)> {
    let found = plain(parts(entry)?.metadata)?;
    Some((std::str::from_utf8(found.producer_name).ok()?, found.last_sequence_id()?))
}

/// Returns the number of messages in a plain entry.
#[must_use]
pub fn count_of(entry: &[u8]) -> Option<u64> {
    Some(plain(parts(entry)?.metadata)?.batch_messages.unwrap_or(1))
}

fn plain_property(mut property: &[u8]) -> Option<()> {
    for tag in [0x0a, 0x12] {
        property = property.strip_prefix(&[tag])?;
        take_bytes(&mut property)?;
    }
    property.is_empty().then_some(())
}

/// The additional fields of copied entries, the same for all entries of one lane.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// The fields before the sequence id.
    pub constant: &'a [u8],
    /// The keys of the properties for the position, the producer name and the sequence id of the original.
    pub keys: [&'a [u8]; 3],
    /// Schema versions on the source, with those on the target.
    pub schemas: &'a [(&'a [u8], &'a [u8])],
}

impl Stamp<'_> {
    /// Returns the copy to store, and its number of messages; None for an entry that is not plain, was replicated, has
    /// a transaction, or an unknown schema version.
    #[must_use]
    pub fn copy(&self, entry: &[u8], (ledger, number): (u64, u64), sequence_id: u64) -> Option<(Vec<u8>, u64)> {
        let Parts { metadata, payload } = parts(entry)?;
        let found = plain(metadata)?;
        if found.is_replicated || found.is_transactional {
            return None;
        }
        std::str::from_utf8(found.producer_name).ok()?;
        let mut out = Vec::with_capacity(entry.len().saturating_add(256));
        out.extend_from_slice(&CHECKSUM_MARK);
        out.extend_from_slice(&[0; 8]); // the checksum, and the size of the metadata
        out.extend_from_slice(metadata);
        if let Some(version) = found.schema_version {
            let (_, there) = self.schemas.iter().find(|(here, _)| *here == version)?;
            out.extend_from_slice(&[0x82, 0x01]);
            put_bytes(&mut out, there);
        }
        out.extend_from_slice(self.constant);
        put_field(&mut out, 0x10, sequence_id);
        let [position, producer, sequence] = self.keys;
        put_property(&mut out, position, format!("{ledger}:{number}").as_bytes());
        put_property(&mut out, producer, found.producer_name);
        put_property(&mut out, sequence, found.sequence_id.to_string().as_bytes());
        out.extend_from_slice(&[0xc0, 0x01]);
        put_varint(&mut out, sequence_id);
        let size = u32::try_from(out.len().checked_sub(10)?).ok()?;
        out.get_mut(6..10)?.copy_from_slice(&size.to_be_bytes());
        let checksum = crc32c_append(crc32c(out.get(6..)?), payload);
        out.get_mut(2..6)?.copy_from_slice(&checksum.to_be_bytes());
        out.extend_from_slice(payload);
        Some((out, found.batch_messages.unwrap_or(1)))
    }
}

fn put_property(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let sizes = [key, value].map(|part| varint_bytes(part.len() as u64).saturating_add(part.len()).saturating_add(1));
    out.push(0x22);
    put_varint(out, sizes.iter().sum::<usize>() as u64);
    out.push(0x0a);
    put_bytes(out, key);
    out.push(0x12);
    put_bytes(out, value);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
