//! SEND, ACK, MESSAGE, `SEND_RECEIPT` and requests about topics, read in runs, and the keys of entries.

use crate::metadata::{fits_its_checksum, parts, plain};
use crate::varints::{split_u32, take_bytes, take_varint};

/// The bytes before the size of the content: the type of the command and the tag of its field.
const SEND: [u8; 3] = [0x08, 0x06, 0x32];
const ACK: [u8; 3] = [0x08, 0x0a, 0x52];
const MESSAGE: [u8; 3] = [0x08, 0x09, 0x4a];
const RECEIPT: [u8; 3] = [0x08, 0x07, 0x3a];

/// The differences between two requests: the envelope, and the tag and the default of their flag.
type Question = ([u8; 4], u8, bool);
/// With `metadata_auto_creation_enabled`.
const PARTITIONED_METADATA: Question = ([0x08, 0x15, 0xaa, 0x01], 0x30, true);
/// With `authoritative`.
const LOOKUP: Question = ([0x08, 0x17, 0xba, 0x01], 0x18, false);

/// Consecutive SENDs of one producer: one whole message each, no marker, with a correct checksum.
#[derive(Debug, PartialEq, Eq)]
pub struct Sends<'a> {
    pub producer_id: u64,
    pub sequence_ids: Vec<u64>,
    pub entries: Vec<&'a [u8]>,
    /// The end of the run.
    pub end: usize,
}

/// Consecutive ACKs of one consumer: individual, of whole entries, without an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Acks {
    pub consumer_id: u64,
    /// Ledger and entry of each; -1 is sent as 2^64-1.
    pub positions: Vec<(i64, i64)>,
    pub end: usize,
}

/// Consecutive MESSAGEs to one consumer: whole, delivered for the first time, with a correct checksum.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrivals<'a> {
    pub consumer_id: u64,
    pub positions: Vec<(i64, i64)>,
    pub entries: Vec<&'a [u8]>,
    /// The number of messages in each entry.
    pub counts: Vec<u64>,
    pub end: usize,
}

/// Consecutive `SEND_RECEIPT`s to one producer.
#[derive(Debug, PartialEq, Eq)]
pub struct Receipts {
    pub producer_id: u64,
    pub sequence_ids: Vec<u64>,
    /// Ledger and entry of each; -1 is sent as 2^64-1.
    pub positions: Vec<(i64, i64)>,
    pub end: usize,
}

/// Consecutive `PARTITIONED_METADATA`s or LOOKUPs with the same flag: each names its topic and nothing else.
#[derive(Debug, PartialEq, Eq)]
pub struct Questions<'a> {
    pub flag: bool,
    /// The topics in order; consecutive requests about one topic are joined, with their request ids.
    pub topics: Vec<(&'a str, Vec<u64>)>,
    pub end: usize,
}

/// Returns the run of SENDs at `start`; None if the frame there is no plain SEND.
#[must_use]
pub fn take_sends(data: &[u8], start: usize, frame_bytes_max: usize) -> Option<Sends<'_>> {
    let (producer_id, sequence_id, entry, end) = send_at(data, start, frame_bytes_max)?;
    let mut run = Sends { producer_id, sequence_ids: vec![sequence_id], entries: vec![entry], end };
    while let Some((producer_id, sequence_id, entry, end)) = send_at(data, run.end, frame_bytes_max) {
        if producer_id != run.producer_id {
            break;
        }
        run.sequence_ids.push(sequence_id);
        run.entries.push(entry);
        run.end = end;
    }
    Some(run)
}

/// Returns the run of ACKs at `start`; None if the frame there is no plain ACK.
#[must_use]
pub fn take_acks(data: &[u8], start: usize, frame_bytes_max: usize) -> Option<Acks> {
    let mut positions = Vec::new();
    let (consumer_id, end) = ack_at(data, start, frame_bytes_max, &mut positions)?;
    let mut run = Acks { consumer_id, positions, end };
    loop {
        let kept = run.positions.len();
        match ack_at(data, run.end, frame_bytes_max, &mut run.positions) {
            Some((consumer_id, end)) if consumer_id == run.consumer_id => run.end = end,
            _ => {
                run.positions.truncate(kept); // what the frame that ends the run left here
                return Some(run);
            }
        }
    }
}

/// Returns the run of MESSAGEs at `start`; None if the frame there is no plain MESSAGE.
#[must_use]
pub fn take_messages(data: &[u8], start: usize, frame_bytes_max: usize) -> Option<Arrivals<'_>> {
    let mut run = Arrivals { consumer_id: 0, positions: vec![], entries: vec![], counts: vec![], end: start };
    while let Some((command, entry, end)) = frame_at(data, run.end, frame_bytes_max) {
        let Some((consumer_id, position)) = content_of(command, &MESSAGE).and_then(plain_message) else { break };
        let Some(count) = parts(entry).and_then(|parts| plain(parts.metadata)).map(|found| found.batch_messages) else {
            break;
        };
        if (consumer_id != run.consumer_id && !run.entries.is_empty()) || !fits_its_checksum(entry) {
            break;
        }
        run.consumer_id = consumer_id;
        run.positions.push(position);
        run.entries.push(entry);
        run.counts.push(count.unwrap_or(1));
        run.end = end;
    }
    (!run.entries.is_empty()).then_some(run)
}

/// Returns the run of receipts at `start`; None if the frame there is no plain receipt.
#[must_use]
pub fn take_receipts(data: &[u8], start: usize, frame_bytes_max: usize) -> Option<Receipts> {
    let mut run = Receipts { producer_id: 0, sequence_ids: vec![], positions: vec![], end: start };
    while let Some((command, entry, end)) = frame_at(data, run.end, frame_bytes_max) {
        let Some((producer_id, sequence_id, position)) = content_of(command, &RECEIPT).and_then(plain_receipt) else {
            break;
        };
        if (producer_id != run.producer_id && !run.positions.is_empty()) || !entry.is_empty() {
            break;
        }
        run.producer_id = producer_id;
        run.sequence_ids.push(sequence_id);
        run.positions.push(position);
        run.end = end;
    }
    (!run.positions.is_empty()).then_some(run)
}

/// Returns the run of requests at `start`; None if the frame there is no plain request.
#[must_use]
pub fn take_questions(data: &[u8], start: usize, frame_bytes_max: usize) -> Option<Questions<'_>> {
    [PARTITIONED_METADATA, LOOKUP].iter().find_map(|kind| {
        let (topic, request_id, flag, end) = question_at(data, start, frame_bytes_max, kind)?;
        let mut run = Questions { flag, topics: vec![(topic, vec![request_id])], end };
        while let Some((topic, request_id, flag, end)) = question_at(data, run.end, frame_bytes_max, kind) {
            match run.topics.last_mut() {
                _ if flag != run.flag => break,
                Some((last, request_ids)) if *last == topic => request_ids.push(request_id),
                _ => run.topics.push((topic, vec![request_id])),
            }
            run.end = end;
        }
        Some(run)
    })
}

/// Returns the ordering key of an entry, else its partition key; None without a key, for one in base64, or of an
/// unusual form.
#[must_use]
pub fn sticky_key(entry: &[u8]) -> Option<&[u8]> {
    let found = plain(parts(entry)?.metadata)?;
    if found.is_key_base64 {
        return None;
    }
    if found.ordering_key.is_empty() { found.partition_key } else { Some(found.ordering_key) }
}

fn send_at(data: &[u8], start: usize, frame_bytes_max: usize) -> Option<(u64, u64, &[u8], usize)> {
    let (command, entry, end) = frame_at(data, start, frame_bytes_max)?;
    let (producer_id, sequence_id) = plain_send(content_of(command, &SEND)?)?;
    fits_its_checksum(entry).then_some((producer_id, sequence_id, entry, end))
}

fn ack_at(data: &[u8], start: usize, frame_bytes_max: usize, into: &mut Vec<(i64, i64)>) -> Option<(u64, usize)> {
    let (command, entry, end) = frame_at(data, start, frame_bytes_max)?;
    let consumer_id = plain_ack(content_of(command, &ACK)?, into)?;
    entry.is_empty().then_some((consumer_id, end))
}

fn question_at<'a>(
    data: &'a [u8],
    start: usize,
    frame_bytes_max: usize,
    (envelope, flag_tag, flag_default): &Question,
) -> Option<(&'a str, u64, bool, usize)> {
    let (command, entry, end) = frame_at(data, start, frame_bytes_max)?;
    let mut content = content_of(command, envelope).filter(|_| entry.is_empty())?;
    let (mut topic, mut request_id, mut flag) = (None, None, *flag_default);
    while let Some((&tag, rest)) = content.split_first() {
        content = rest;
        match tag {
            0x0a => topic = Some(take_bytes(&mut content)?),
            0x10 => request_id = Some(take_varint(&mut content)?),
            0x3a => (take_varint(&mut content)? == 0).then_some(())?, // advertised_listener_name: as if not there
            _ if tag == *flag_tag => flag = take_varint(&mut content)? != 0,
            _ => return None,
        }
    }
    Some((std::str::from_utf8(topic?).ok()?, request_id?, flag, end))
}

/// Returns the command and the entry of a complete frame, and its end.
fn frame_at(data: &[u8], start: usize, frame_bytes_max: usize) -> Option<(&[u8], &[u8], usize)> {
    let (total_size, rest) = split_u32(data.get(start..)?)?;
    if total_size > frame_bytes_max {
        return None;
    }
    let (command_size, body) = split_u32(rest.get(..total_size)?)?;
    let (command, entry) = body.split_at_checked(command_size)?;
    Some((command, entry, start.checked_add(4)?.checked_add(total_size)?))
}

/// Returns the content of a command that has only its type and this content.
fn content_of<'a>(command: &'a [u8], envelope: &[u8]) -> Option<&'a [u8]> {
    let mut rest = command.strip_prefix(envelope)?;
    let size = take_varint(&mut rest)?;
    (u64::try_from(rest.len()).ok()? == size).then_some(rest)
}

/// Returns producer id and sequence id.
fn plain_send(mut content: &[u8]) -> Option<(u64, u64)> {
    let (mut producer_id, mut sequence_id) = (None, None);
    while let Some((&tag, rest)) = content.split_first() {
        content = rest;
        let value = take_varint(&mut content)?;
        match (tag, value) {
            (0x08, _) => producer_id = Some(value),
            (0x10, _) => sequence_id = Some(value),
            (0x18, 1) => {}               // num_messages
            (0x30 | 0x38 | 0x40, 0) => {} // highest_sequence_id, is_chunk, marker: as if not there
            _ => return None,
        }
    }
    Some((producer_id?, sequence_id?))
}

/// Returns the consumer id. Adds the positions to `into`, including those before an unusual one.
fn plain_ack(mut content: &[u8], into: &mut Vec<(i64, i64)>) -> Option<u64> {
    let (mut consumer_id, mut individual) = (None, false);
    let named_before = into.len();
    while let Some((&tag, rest)) = content.split_first() {
        content = rest;
        let value = take_varint(&mut content)?;
        match (tag, value) {
            (0x08, _) => consumer_id = Some(value),
            (0x10, 0) => individual = true,
            (0x1a, size) => {
                let (message_id, rest) = content.split_at_checked(usize::try_from(size).ok()?)?;
                content = rest;
                into.push(whole_entry(message_id)?);
            }
            _ => return None,
        }
    }
    if !individual || into.len() == named_before {
        return None;
    }
    consumer_id
}

/// Returns ledger and entry of a message id without batch index or chunk.
fn whole_entry(mut message_id: &[u8]) -> Option<(i64, i64)> {
    let (mut ledger, mut entry) = (None, None);
    while let Some((&tag, rest)) = message_id.split_first() {
        message_id = rest;
        let value = take_varint(&mut message_id)?;
        match tag {
            0x08 => ledger = Some(value.cast_signed()),
            0x10 => entry = Some(value.cast_signed()),
            0x18 | 0x20 | 0x30 => {} // partition, batch_index, batch_size say nothing about which entry it is
            _ => return None,
        }
    }
    Some((ledger?, entry?))
}

/// Returns the consumer id and the position of a message that is delivered whole, and for the first time.
fn plain_message(mut content: &[u8]) -> Option<(u64, (i64, i64))> {
    let (mut consumer_id, mut position) = (None, None);
    while let Some((&tag, rest)) = content.split_first() {
        content = rest;
        match tag {
            0x08 => consumer_id = Some(take_varint(&mut content)?),
            0x12 => position = Some(whole_entry(take_bytes(&mut content)?)?),
            0x18 => (take_varint(&mut content)? == 0).then_some(())?, // redelivery_count
            _ => return None,
        }
    }
    Some((consumer_id?, position?))
}

/// Returns producer id, sequence id and position.
fn plain_receipt(mut content: &[u8]) -> Option<(u64, u64, (i64, i64))> {
    let (mut producer_id, mut sequence_id, mut position) = (None, None, None);
    while let Some((&tag, rest)) = content.split_first() {
        content = rest;
        match tag {
            0x08 => producer_id = Some(take_varint(&mut content)?),
            0x10 => sequence_id = Some(take_varint(&mut content)?),
            0x1a => position = Some(whole_entry(take_bytes(&mut content)?)?),
            0x20 => drop(take_varint(&mut content)?), // highest_sequence_id
            _ => return None,
        }
    }
    Some((producer_id?, sequence_id?, position?))
}
