//! Hostile bytes: every result is a run of the bytes that are there, or nothing. Best run with a sanitizer:
//!
//!     RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p interpulse-frames --target x86_64-unknown-linux-gnu
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)]

use interpulse_frames::{
    Answer, Delivery, Messages, Receipt, Stamp, copy_pieces, count_of, ends_of, last_of, read_batches, sticky_key,
    take_acks, take_messages, take_questions, take_receipts, take_sends, write_receipts, write_send_head,
};
use std::time::{Duration, Instant};

/// The time for random bytes; `FUZZ_SECONDS` in the environment asks for more.
const SECONDS: u64 = 2;

/// Pseudo-random numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }
}

fn frame(command: &[u8], entry: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(u32::try_from(4 + command.len() + entry.len()).unwrap().to_be_bytes());
    out.extend(u32::try_from(command.len()).unwrap().to_be_bytes());
    out.extend(command);
    out.extend(entry);
    out
}

fn entry(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x0e, 0x01];
    out.extend(crc32c::crc32c(payload).to_be_bytes());
    out.extend(payload);
    out
}

fn send(producer: u8, sequence_id: u8, payload: &[u8]) -> Vec<u8> {
    frame(&[0x08, 0x06, 0x32, 4, 0x08, producer, 0x10, sequence_id], &entry(payload))
}

fn ack(consumer: u8, number: u8) -> Vec<u8> {
    frame(&[0x08, 0x0a, 0x52, 10, 0x08, consumer, 0x10, 0, 0x1a, 4, 0x08, 3, 0x10, number], &[])
}

fn question(kind: u8, topic: &str, request_id: u8) -> Vec<u8> {
    let size = u8::try_from(topic.len()).unwrap();
    let tag = if kind == 0x15 { 0xaa } else { 0xba };
    frame(&[&[0x08, kind, tag, 0x01, size + 4, 0x0a, size], topic.as_bytes(), &[0x10, request_id]].concat(), &[])
}

/// Returns the metadata of one message, in an entry with a correct checksum.
fn whole_entry(payload: &[u8]) -> Vec<u8> {
    let metadata = b"\x0a\x01p\x10\x07\x18\x01\x22\x06\x0a\x01k\x12\x01v\x32\x03key\x92\x01\x00";
    entry(&[&[0, 0, 0, u8::try_from(metadata.len()).unwrap()], &metadata[..], payload].concat())
}

fn message(consumer: u8, number: u8, payload: &[u8]) -> Vec<u8> {
    frame(&[0x08, 0x09, 0x4a, 8, 0x08, consumer, 0x12, 4, 0x08, 3, 0x10, number], &whole_entry(payload))
}

fn receipt(producer: u8, number: u8) -> Vec<u8> {
    frame(&[0x08, 0x07, 0x3a, 10, 0x08, producer, 0x10, number, 0x1a, 4, 0x08, 3, 0x10, number], &[])
}

#[test]
fn messages_and_receipts_make_runs() {
    let stream = [message(4, 1, b"a"), message(4, 2, b""), message(5, 3, b"c")].concat();
    let run = take_messages(&stream, 0, 1000).unwrap();
    assert_eq!((run.consumer_id, run.positions, run.counts), (4, vec![(3, 1), (3, 2)], vec![1, 1]));
    assert_eq!(run.entries, [whole_entry(b"a"), whole_entry(b"")]);
    assert_eq!(take_messages(&stream, run.end, 1000).unwrap().end, stream.len());
    let stream = [receipt(4, 1), receipt(4, 2), receipt(5, 3)].concat();
    let run = take_receipts(&stream, 0, 1000).unwrap();
    assert_eq!((run.producer_id, run.sequence_ids, run.positions), (4, vec![1, 2], vec![(3, 1), (3, 2)]));
    assert_eq!(take_receipts(&stream, run.end, 1000).unwrap().end, stream.len());
    assert_eq!(take_messages(&stream, 0, 1000), None);
}

#[test]
fn the_copy_of_any_bytes_is_an_entry_or_none() {
    let stamp = Stamp { constant: b"\x0a\x04lane", keys: [b"a", b"b", b"c"], schemas: &[(b"v", b"w")] };
    let whole = whole_entry(b"payload");
    let (copy, count) = stamp.copy(&whole, (1, 2), 300).unwrap();
    assert_eq!((count, last_of(&copy)), (1, Some(("lane", 300))));
    assert_eq!(copy[2..6], crc32c::crc32c(&copy[6..]).to_be_bytes());
    assert!(copy.ends_with(b"payload"));
    let mut chance = Chance(11);
    for _ in 0..50_000 {
        let mut data = whole.clone();
        data.truncate(10 + chance.below(whole.len()));
        for _ in 0..chance.below(4) {
            let place = chance.below(data.len());
            data[place] = u8::try_from(chance.below(256)).unwrap();
        }
        if let Some((copy, _)) = stamp.copy(&data, (1, 2), 300) {
            assert_eq!(last_of(&copy).unwrap().0, "lane");
            assert!(count_of(&data).is_none_or(|count| count > 0));
            assert!(last_of(&data).is_none_or(|(name, _)| name.len() <= data.len()));
        }
    }
}

#[test]
fn questions_make_a_run_by_topics() {
    let stream = [question(0x15, "a", 1), question(0x15, "a", 2), question(0x15, "b", 3), question(0x17, "b", 4)];
    let stream = stream.concat();
    let run = take_questions(&stream, 0, 1000).unwrap();
    assert_eq!((run.flag, run.topics), (true, vec![("a", vec![1, 2]), ("b", vec![3])]));
    let next = take_questions(&stream, run.end, 1000).unwrap();
    assert_eq!((next.flag, next.topics, next.end), (false, vec![("b", vec![4])], stream.len()));
    assert_eq!(take_questions(&stream, 0, 10), None, "a frame above the limit");
}

#[test]
fn a_run_ends_before_what_is_not_plain() {
    let flow: &[u8] = &frame(&[0x08, 0x0b, 0x5a, 4, 0x08, 1, 0x10, 1], &[]);
    let stream = [&send(1, 7, b"a"), &send(1, 8, b""), &send(2, 9, b"c"), flow].map(<[u8]>::to_vec).concat();
    let run = take_sends(&stream, 0, 1000).unwrap();
    assert_eq!((run.producer_id, run.sequence_ids, run.entries), (1, vec![7, 8], vec![&entry(b"a")[..], &entry(b"")]));
    let next = take_sends(&stream, run.end, 1000).unwrap();
    assert_eq!((next.producer_id, next.end), (2, stream.len() - flow.len()));
    assert_eq!(take_sends(&stream, next.end, 1000), None);
    assert_eq!(take_sends(&stream, 0, 10), None, "a frame above the limit");
    assert_eq!(take_acks(&stream, 0, 1000), None);
}

#[test]
fn acks_of_one_consumer_make_a_run() {
    let stream = [ack(4, 1), ack(4, 2), ack(5, 3)].concat();
    let run = take_acks(&stream, 0, 1000).unwrap();
    assert_eq!((run.consumer_id, run.positions), (4, vec![(3, 1), (3, 2)]));
    assert_eq!(take_acks(&stream, run.end, 1000).unwrap().positions, [(3, 3)]);
}

#[test]
fn the_key_of_any_bytes_is_read_or_left() {
    let metadata = b"\x0a\x01p\x10\x07\x18\x01\x22\x06\x0a\x01k\x12\x01v\x32\x03key\x92\x01\x00";
    let head = b"\x0e\x01sum!\x00\x00\x00";
    let whole = [&head[..], &[u8::try_from(metadata.len()).unwrap()], metadata, b"payload"].concat();
    assert_eq!(sticky_key(&whole), Some(&b"key"[..]));
    assert_eq!(count_of(&whole), Some(1));
    let mut chance = Chance(7);
    for _ in 0..50_000 {
        let mut data = whole.clone();
        data.truncate(10 + chance.below(whole.len()));
        for _ in 0..chance.below(4) {
            let place = chance.below(data.len());
            data[place] = u8::try_from(chance.below(256)).unwrap();
        }
        assert!(sticky_key(&data).is_none_or(|key| key.len() <= data.len()));
    }
}

#[test]
fn the_messages_of_any_batch_are_in_it_or_left() {
    let keyed = b"\0\0\0\x12\x0a\x06\x0a\x01n\x12\x01v\x12\x01k\x18\x02\x3a\x01o\x28\x07de";
    let gone = b"\0\0\0\x0c\x0a\x06\x0a\x01n\x12\x01v\x18\x01\x20\x01f";
    let whole = [&b"\0\0\0\x02\x18\x03abc"[..], keyed, gone].concat();
    let found = read_batches([(&whole[..], 0, 3), (&whole[..], 9, 1)]).unwrap();
    assert_eq!((&found.counts[..], &found.flags[..]), (&[2, 1][..], &[1, 11, 11][..]));
    assert_eq!((found.indexes, found.event_times), (vec![0, 1, 0], vec![0, 7, 7]));
    assert_eq!((found.keys, found.ordering_keys), (vec![&b""[..], b"k", b"k"], vec![&b""[..], b"o", b"o"]));
    assert_eq!((found.sequence_ids, found.property_ends), (vec![0, 0, 0], vec![0, 0, 1, 2]));
    assert_eq!((found.property_names, found.property_values), (vec![&b"n"[..]; 2], vec![&b"v"[..]; 2]));
    let mut out = [0; 7];
    copy_pieces(&found.payloads, &mut out);
    assert_eq!((&out, ends_of(&found.payloads).unwrap()), (b"abcdede", vec![0, 3, 5, 7]));
    let mut chance = Chance(13);
    for _ in 0..50_000 {
        let mut data = whole.clone();
        data.truncate(1 + chance.below(whole.len()));
        for _ in 0..chance.below(4) {
            let place = chance.below(data.len());
            data[place] = u8::try_from(chance.below(256)).unwrap();
        }
        let count = 1 + chance.below(4);
        if let Some(found) = read_batches([(&data[..], 0, count)]) {
            let rows = found.flags.len();
            assert!(found.counts == [rows] && rows <= count);
            assert!([&found.payloads, &found.keys, &found.ordering_keys].iter().all(|column| column.len() == rows));
            assert!([&found.sequence_ids, &found.event_times].iter().all(|column| column.len() == rows));
            for pieces in [&found.payloads, &found.keys, &found.property_names] {
                assert!(usize::try_from(*ends_of(pieces).unwrap().last().unwrap()).unwrap() <= data.len());
            }
            assert_eq!(found.property_ends.len(), rows + 1);
            assert_eq!(found.property_names.len(), found.property_values.len());
        }
    }
    assert!(read_batches([(&whole[..], whole.len() + 1, 0)]).is_none());
}

#[test]
fn any_bytes_are_read_or_left() {
    let seconds = std::env::var("FUZZ_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let (mut rounds, mut taken) = (0u64, 0u64);
    while Instant::now() < until {
        for _ in 0..1000 {
            let data = damaged_stream(&mut chance);
            taken += u64::try_from(read_all(&data)).unwrap();
            rounds += 1;
        }
    }
    assert!(taken > rounds / 4, "{taken} runs of {rounds} streams: the bytes made up are too wild to test anything");
}

#[test]
fn what_is_written_is_as_long_as_it_says() {
    let mut chance = Chance(42);
    for _ in 0..20_000 {
        let bits = u32::try_from(chance.below(64)).unwrap();
        let number = u64::MAX >> bits;
        let mut out = Vec::new();
        let receipt = Receipt { sequence_id: number, highest_sequence_id: number, ledger: number, entry: 1 };
        write_receipts(&mut out, number, Some(number), &[receipt, receipt]);
        assert_eq!(out.len() % 2, 0);
        assert_frame(&out[..out.len() / 2], 0);
        out.clear();
        let frames = Messages { consumer_id: number, partition: None, epoch: Some(number) };
        let words = vec![number; chance.below(20)];
        let delivery =
            Delivery { ledger: 1, entry_id: number, entry: b"entry", redelivery_count: number, ack_set: &words };
        frames.write_head(&mut out, &mut Vec::new(), &delivery);
        assert_frame(&out, 5);
        out.clear();
        let filler = vec![0; chance.below(300)];
        write_send_head(&mut out, number, number, number, 5);
        assert_frame(&out, 5);
        out.clear();
        let answer = Answer { envelope: &[0x08, 0x16, 0xb2, 0x01], before: &filler, after: &filler };
        answer.write_all(&mut out, &[number, number]);
        assert_frame(&out[..out.len() / 2], 0);
    }
}

fn damaged_stream(chance: &mut Chance) -> Vec<u8> {
    let mut data = Vec::new();
    for _ in 0..=chance.below(5) {
        let (id, number) = (u8::try_from(chance.below(3)).unwrap(), u8::try_from(chance.below(128)).unwrap());
        let payload = vec![number; chance.below(40)];
        data.extend(match chance.below(7) {
            0 => ack(id, number),
            3 => message(id, number, &payload),
            4 => receipt(id, number),
            1 => question(0x15, "topic", number),
            2 => question(0x17, "topic", number),
            _ => send(id, number, &payload),
        });
    }
    for _ in 0..chance.below(4) {
        let place = chance.below(data.len());
        match chance.below(3) {
            0 => data[place] = u8::try_from(chance.below(256)).unwrap(),
            1 => data.truncate(place.max(1)),
            _ => data.insert(place, 0xff),
        }
    }
    data
}

/// Returns the number of runs in these bytes. Unread bytes are skipped one by one.
fn read_all(data: &[u8]) -> usize {
    let (mut start, mut found) = (0, 0);
    while start <= data.len() {
        let end = if let Some(run) = take_sends(data, start, 10_000) {
            assert_eq!(run.sequence_ids.len(), run.entries.len());
            assert!(run.entries.iter().all(|entry| entry.len() >= 6));
            Some(run.end)
        } else {
            let acks = take_acks(data, start, 10_000).map(|run| {
                assert!(!run.positions.is_empty());
                run.end
            });
            let arrivals = take_messages(data, start, 10_000).map(|run| {
                assert_eq!((run.positions.len(), run.counts.len()), (run.entries.len(), run.entries.len()));
                run.end
            });
            let receipts = take_receipts(data, start, 10_000).map(|run| {
                assert_eq!(run.sequence_ids.len(), run.positions.len());
                run.end
            });
            acks.or(arrivals).or(receipts).or_else(|| {
                let run = take_questions(data, start, 10_000)?;
                assert!(run.topics.iter().all(|(_, request_ids)| !request_ids.is_empty()));
                Some(run.end)
            })
        };
        if let Some(end) = end {
            assert!(start < end && end <= data.len());
            found += 1;
        }
        start = end.unwrap_or(start + 1);
    }
    assert!(take_sends(data, usize::MAX, usize::MAX).is_none());
    found
}

fn assert_frame(frame: &[u8], entry_bytes: usize) {
    let size = |at: usize| usize::try_from(u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())).unwrap();
    assert_eq!(size(0), frame.len() - 4 + entry_bytes);
    assert_eq!(size(4), frame.len() - 8);
}
