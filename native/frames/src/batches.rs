//! Many messages in one entry: the bounds of their payloads, and the payloads alone.

use crate::varints::{split_u32, take_small, take_varint};

const PAYLOAD_SIZE: u8 = 0x18;
const SEQUENCE_ID: u8 = 0x40;

/// Returns begin and end of each payload in a batch at `start`; None if the metadata of a message has more than its
/// size and a sequence id.
pub fn split_batch(data: &[u8], start: usize, count: usize) -> Option<Vec<u8>> {
    let mut bounds = Vec::new();
    let mut rest = data.get(start..)?;
    for _ in 0..count {
        let (size, after) = split_u32(rest)?;
        let (metadata, after) = after.split_at_checked(size)?;
        let payload_bytes = plain_payload_bytes(metadata)?;
        put_place(&mut bounds, data.len().checked_sub(after.len())?)?;
        (_, rest) = after.split_at_checked(payload_bytes)?;
        put_place(&mut bounds, data.len().checked_sub(rest.len())?)?;
    }
    Some(bounds)
}

fn plain_payload_bytes(metadata: &[u8]) -> Option<usize> {
    let mut rest = metadata.strip_prefix(&[PAYLOAD_SIZE])?;
    let size = take_small(&mut rest)?;
    if !rest.is_empty() {
        rest = rest.strip_prefix(&[SEQUENCE_ID])?;
        take_varint(&mut rest)?;
    }
    rest.is_empty().then_some(size)
}

/// A batch, and the bounds of its payloads.
pub type Split<'a> = (&'a [u8], &'a [u8]);

/// Returns the bytes of all payloads, and the begin of each and the end of the last once they are joined. None if a
/// payload is outside its batch.
pub fn measure_payloads(batches: &[Split]) -> Option<(usize, Vec<u8>)> {
    let (mut end, mut offsets) = (0usize, Vec::new());
    put_place(&mut offsets, end)?;
    for payload in payloads(batches) {
        end = end.checked_add(payload?.len())?;
        put_place(&mut offsets, end)?;
    }
    Some((end, offsets))
}

/// Joins as many payloads as `out` has room for.
pub fn copy_payloads(batches: &[Split], mut out: &mut [u8]) {
    for payload in payloads(batches).flatten() {
        let Some((room, rest)) = out.split_at_mut_checked(payload.len()) else { return };
        room.copy_from_slice(payload);
        out = rest;
    }
}

fn payloads<'a>(batches: &[Split<'a>]) -> impl Iterator<Item = Option<&'a [u8]>> {
    batches.iter().flat_map(|(batch, bounds)| bounds.chunks_exact(8).map(|pair| payload_at(batch, pair)))
}

fn payload_at<'a>(batch: &'a [u8], pair: &[u8]) -> Option<&'a [u8]> {
    let (start, end) = pair.split_at_checked(4)?;
    batch.get(place(start)?..place(end)?)
}

fn put_place(out: &mut Vec<u8>, place: usize) -> Option<()> {
    out.extend(i32::try_from(place).ok()?.to_ne_bytes());
    Some(())
}

fn place(bytes: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_ne_bytes(bytes.try_into().ok()?)).ok()
}
