//! `SEND_RECEIPT`, MESSAGE, SEND and answers, written in runs, byte for byte as protobuf would.

use crate::varints::{put_field, put_varint, varint_bytes};

const RECEIPT: [u8; 3] = [0x08, 0x07, 0x3a];
const MESSAGE: [u8; 3] = [0x08, 0x09, 0x4a];
const SEND: [u8; 3] = [0x08, 0x06, 0x32];

/// The largest content written here, apart from MESSAGEs with acknowledged parts, is six numbers and their tags.
const CONTENT_BYTES: usize = 80;

/// One receipt. Negative numbers are sent as two's complement of 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    pub sequence_id: u64,
    /// 0 if the client sent none.
    pub highest_sequence_id: u64,
    pub ledger: u64,
    pub entry: u64,
}

/// Appends the frames of these receipts to `out`. `partition` is None if the topic is not partitioned.
pub fn write_receipts(out: &mut Vec<u8>, producer_id: u64, partition: Option<u64>, receipts: &[Receipt]) {
    let mut content = Vec::with_capacity(CONTENT_BYTES);
    for receipt in receipts {
        content.clear();
        put_field(&mut content, 0x08, producer_id);
        put_field(&mut content, 0x10, receipt.sequence_id);
        put_position(&mut content, 0x1a, receipt.ledger, receipt.entry, partition);
        if receipt.highest_sequence_id != 0 {
            put_field(&mut content, 0x20, receipt.highest_sequence_id);
        }
        put_frame(out, &RECEIPT, &content, 0);
    }
}

/// Answers that differ only in the request id, between `before` (which ends with its tag) and `after`.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The type of the command and the tag of its content.
    pub envelope: &'a [u8],
    pub before: &'a [u8],
    pub after: &'a [u8],
}

impl Answer<'_> {
    /// Appends the frames that answer these requests to `out`.
    pub fn write_all(&self, out: &mut Vec<u8>, request_ids: &[u64]) {
        let mut content = self.before.to_vec();
        for request_id in request_ids {
            content.truncate(self.before.len());
            put_varint(&mut content, *request_id);
            content.extend_from_slice(self.after);
            put_frame(out, self.envelope, &content, 0);
        }
    }
}

/// One delivery of an entry to a consumer.
#[derive(Debug)]
pub struct Delivery<'a> {
    pub ledger: u64,
    pub entry_id: u64,
    pub entry: &'a [u8],
    pub redelivery_count: u64,
    /// The words of the unacknowledged messages.
    pub ack_set: &'a [u64],
}

/// The MESSAGE frames of one consumer.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    pub consumer_id: u64,
    pub partition: Option<u64>,
    /// The consumer epoch, for clients that sent one.
    pub epoch: Option<u64>,
}

impl Messages {
    /// Appends the frame up to its entry to `out`.
    pub fn write_head(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>, delivery: &Delivery<'_>) {
        scratch.clear();
        put_field(scratch, 0x08, self.consumer_id);
        put_position(scratch, 0x12, delivery.ledger, delivery.entry_id, self.partition);
        if delivery.redelivery_count != 0 {
            put_field(scratch, 0x18, delivery.redelivery_count);
        }
        for word in delivery.ack_set {
            put_field(scratch, 0x20, *word);
        }
        if let Some(epoch) = self.epoch {
            put_field(scratch, 0x28, epoch);
        }
        put_frame(out, &MESSAGE, scratch, delivery.entry.len());
    }
}

/// Appends the frame of a SEND up to its entry to `out`; for several messages it has a highest sequence id too.
pub fn write_send_head(out: &mut Vec<u8>, producer_id: u64, sequence_id: u64, messages: u64, entry_bytes: usize) {
    let mut content = Vec::with_capacity(CONTENT_BYTES);
    put_field(&mut content, 0x08, producer_id);
    put_field(&mut content, 0x10, sequence_id);
    if messages != 1 {
        put_field(&mut content, 0x18, messages);
    }
    if messages != 1 && sequence_id != 0 {
        put_field(&mut content, 0x30, sequence_id);
    }
    put_frame(out, &SEND, &content, entry_bytes);
}

fn put_position(out: &mut Vec<u8>, tag: u8, ledger: u64, entry: u64, partition: Option<u64>) {
    let mut size = varint_bytes(ledger).saturating_add(varint_bytes(entry)).saturating_add(2);
    if let Some(partition) = partition {
        size = size.saturating_add(varint_bytes(partition)).saturating_add(1);
    }
    put_field(out, tag, size as u64);
    put_field(out, 0x08, ledger);
    put_field(out, 0x10, entry);
    if let Some(partition) = partition {
        put_field(out, 0x18, partition);
    }
}

fn put_frame(out: &mut Vec<u8>, envelope: &[u8], content: &[u8], entry_bytes: usize) {
    let size = content.len();
    let command_size = size.saturating_add(varint_bytes(size as u64)).saturating_add(envelope.len());
    put_u32(out, command_size.saturating_add(entry_bytes).saturating_add(4));
    put_u32(out, command_size);
    out.extend_from_slice(envelope);
    put_varint(out, size as u64);
    out.extend_from_slice(content);
}

fn put_u32(out: &mut Vec<u8>, value: usize) {
    // A frame has five megabytes, or the limit of a broker: a larger entry was never accepted.
    out.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes());
}
