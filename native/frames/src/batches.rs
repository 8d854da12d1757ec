//! Many messages in one entry: their payloads and their own metadata, column by column.

use crate::varints::{split_u32, take_bytes, take_small, take_varint};

const HAS_VALUE: u8 = 1;
const HAS_KEY: u8 = 2;
const KEY_IN_BASE64: u8 = 4;
const HAS_ORDERING_KEY: u8 = 8;
const HAS_SEQUENCE_ID: u8 = 16;

/// The messages of some batches without those that compaction removed. What a message lacks is 0 or empty.
#[derive(Debug, Default)]
pub struct Columns<'a> {
    /// The number of messages of each batch.
    pub counts: Vec<usize>,
    /// Where each message is in its batch.
    pub indexes: Vec<i32>,
    pub flags: Vec<u8>,
    pub sequence_ids: Vec<u64>,
    pub event_times: Vec<u64>,
    /// The number of properties before each message, and of all.
    pub property_ends: Vec<i32>,
    pub payloads: Vec<&'a [u8]>,
    pub keys: Vec<&'a [u8]>,
    pub ordering_keys: Vec<&'a [u8]>,
    pub property_names: Vec<&'a [u8]>,
    pub property_values: Vec<&'a [u8]>,
}

/// Reads uncompressed batches: the bytes, where the batch begins in them, and its number of messages. None if one is
/// damaged or has unusual metadata.
pub fn read_batches<'a>(batches: impl IntoIterator<Item = (&'a [u8], usize, usize)>) -> Option<Columns<'a>> {
    let mut columns = Columns { property_ends: vec![0], ..Columns::default() };
    for (data, start, count) in batches {
        let mut rest = data.get(start..)?;
        let before = columns.flags.len();
        for index in 0..count {
            columns.take_message(&mut rest, index)?;
        }
        columns.counts.push(columns.flags.len().checked_sub(before)?);
    }
    let rows = columns.flags.len();
    columns.sequence_ids.resize(rows, 0);
    columns.event_times.resize(rows, 0);
    columns.keys.resize(rows, &[]);
    columns.ordering_keys.resize(rows, &[]);
    Some(columns)
}

impl<'a> Columns<'a> {
    fn take_message(&mut self, rest: &mut &'a [u8], index: usize) -> Option<()> {
        let (size, after) = split_u32(rest)?;
        let (mut metadata, after) = after.split_at_checked(size)?;
        let first_property = self.property_names.len();
        let (mut payload_bytes, mut key, mut ordering_key, mut sequence_id) = (None, None, None, None);
        let (mut event_time, mut is_base64, mut has_no_key, mut has_no_value, mut is_gone) = (0, 0, 0, 0, 0);
        while !metadata.is_empty() {
            match take_small(&mut metadata)? {
                0x0a => self.take_property(take_bytes(&mut metadata)?)?,
                0x12 => key = Some(take_bytes(&mut metadata)?),
                0x18 => payload_bytes = Some(take_varint(&mut metadata)?),
                0x20 => is_gone = take_varint(&mut metadata)?,
                0x28 => event_time = take_varint(&mut metadata)?,
                0x30 => is_base64 = take_varint(&mut metadata)?,
                0x3a => ordering_key = Some(take_bytes(&mut metadata)?),
                0x40 => sequence_id = Some(take_varint(&mut metadata)?),
                0x48 => has_no_value = take_varint(&mut metadata)?,
                0x50 => has_no_key = take_varint(&mut metadata)?,
                _ => return None,
            }
        }
        let (payload, after) = after.split_at_checked(usize::try_from(place(payload_bytes?)?).ok()?)?;
        *rest = after;
        if is_gone != 0 {
            self.property_names.truncate(first_property);
            self.property_values.truncate(first_property);
            return Some(());
        }
        let key = key.filter(|_| has_no_key == 0);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let row = self.flags.len();
        self.flags.push(
            flag(has_no_value == 0, HAS_VALUE)
                | flag(key.is_some(), HAS_KEY)
                | flag(is_base64 != 0, KEY_IN_BASE64)
                | flag(ordering_key.is_some(), HAS_ORDERING_KEY)
                | flag(sequence_id.is_some(), HAS_SEQUENCE_ID),
        );
        self.indexes.push(place(index)?);
        self.payloads.push(payload);
        self.property_ends.push(place(self.property_names.len())?);
        put(&mut self.keys, row, key);
        put(&mut self.ordering_keys, row, ordering_key);
        put(&mut self.sequence_ids, row, sequence_id);
        put(&mut self.event_times, row, (event_time != 0).then_some(event_time));
        Some(())
    }

    fn take_property(&mut self, mut property: &'a [u8]) -> Option<()> {
        for (tag, pieces) in [(0x0a, &mut self.property_names), (0x12, &mut self.property_values)] {
            property = property.strip_prefix(&[tag])?;
            pieces.push(take_bytes(&mut property)?);
        }
        property.is_empty().then_some(())
    }
}

/// Appends what a row has, behind the defaults of rows that had nothing.
fn put<T: Clone + Default>(column: &mut Vec<T>, row: usize, value: Option<T>) {
    if let Some(value) = value {
        column.resize(row, T::default());
        column.push(value);
    }
}

/// Returns the begin of each piece and the end of the last, once they are joined.
pub fn ends_of(pieces: &[&[u8]]) -> Option<Vec<i32>> {
    let mut end = 0i32;
    let mut ends = Vec::with_capacity(pieces.len().checked_add(1)?);
    ends.push(end);
    for piece in pieces {
        end = end.checked_add(place(piece.len())?)?;
        ends.push(end);
    }
    Some(ends)
}

/// Joins as many pieces as `out` has room for.
pub fn copy_pieces(pieces: &[&[u8]], mut out: &mut [u8]) {
    for piece in pieces {
        let Some((room, rest)) = out.split_at_mut_checked(piece.len()) else { return };
        room.copy_from_slice(piece);
        out = rest;
    }
}

fn place(number: impl TryInto<i32>) -> Option<i32> {
    number.try_into().ok()
}
