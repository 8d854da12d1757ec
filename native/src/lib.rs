//! The frame codec as a Python module. `interpulse/wire/codec.py` describes each function; `python_codec.py` is its
//! twin.

use interpulse_frames::{
    Answer, Delivery, Messages, Receipt, Stamp, copy_pieces, count_of, ends_of, last_of, read_batches as columns_of,
    sticky_key, take_acks as read_acks, take_messages as read_messages, take_questions as read_questions,
    take_receipts as read_receipts, take_sends as read_sends, write_receipts, write_send_head,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::panic::{AssertUnwindSafe, UnwindSafe, catch_unwind};

type SendRun<'py> = (u64, Bound<'py, PyList>, Bound<'py, PyList>, usize);
type AckRun<'py> = (u64, Bound<'py, PyList>, usize);
type MessageRun<'py> = (u64, Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>, usize);
type ReceiptRun<'py> = (u64, Bound<'py, PyList>, Bound<'py, PyList>, usize);
type QuestionRun<'py> = (bool, Bound<'py, PyList>, usize);

#[pyfunction]
fn take_sends<'py>(
    py: Python<'py>,
    data: &[u8],
    start: usize,
    frame_bytes_max: usize,
) -> PyResult<Option<SendRun<'py>>> {
    let run = guarded(|| read_sends(data, start, frame_bytes_max));
    run.map(|run| {
        let entries = PyList::new(py, run.entries.iter().map(|entry| PyBytes::new(py, entry)))?;
        Ok((run.producer_id, PyList::new(py, run.sequence_ids)?, entries, run.end))
    })
    .transpose()
}

#[pyfunction]
fn take_acks<'py>(py: Python<'py>, data: &[u8], start: usize, frame_bytes_max: usize) -> PyResult<Option<AckRun<'py>>> {
    let run = guarded(|| read_acks(data, start, frame_bytes_max));
    run.map(|run| Ok((run.consumer_id, PyList::new(py, run.positions)?, run.end))).transpose()
}

#[pyfunction]
fn take_questions<'py>(
    py: Python<'py>,
    data: &[u8],
    start: usize,
    frame_bytes_max: usize,
) -> PyResult<Option<QuestionRun<'py>>> {
    let run = guarded(|| read_questions(data, start, frame_bytes_max));
    run.map(|run| Ok((run.flag, PyList::new(py, run.topics)?, run.end))).transpose()
}

#[pyfunction]
fn take_messages<'py>(
    py: Python<'py>,
    data: &[u8],
    start: usize,
    frame_bytes_max: usize,
) -> PyResult<Option<MessageRun<'py>>> {
    let run = guarded(|| read_messages(data, start, frame_bytes_max));
    run.map(|run| {
        let entries = PyList::new(py, run.entries.iter().map(|entry| PyBytes::new(py, entry)))?;
        Ok((run.consumer_id, PyList::new(py, run.positions)?, entries, PyList::new(py, run.counts)?, run.end))
    })
    .transpose()
}

#[pyfunction]
fn take_receipts<'py>(
    py: Python<'py>,
    data: &[u8],
    start: usize,
    frame_bytes_max: usize,
) -> PyResult<Option<ReceiptRun<'py>>> {
    let run = guarded(|| read_receipts(data, start, frame_bytes_max));
    run.map(|run| Ok((run.producer_id, PyList::new(py, run.sequence_ids)?, PyList::new(py, run.positions)?, run.end)))
        .transpose()
}

#[pyfunction]
fn encode_sends<'py>(
    py: Python<'py>,
    producer_id: u64,
    sequence_ids: Vec<u64>,
    counts: Vec<u64>,
    entries: Vec<Bound<'py, PyBytes>>,
    piece_bytes_large: usize,
) -> PyResult<Bound<'py, PyList>> {
    let pieces = PyList::empty(py);
    let mut out = Vec::new();
    for ((entry, sequence_id), count) in entries.iter().zip(sequence_ids).zip(counts) {
        let bytes = entry.as_bytes();
        write_send_head(&mut out, producer_id, sequence_id, count, bytes.len());
        if bytes.len() < piece_bytes_large {
            out.extend_from_slice(bytes);
        } else {
            pieces.append(PyBytes::new(py, &out))?;
            pieces.append(entry)?;
            out.clear();
        }
    }
    if !out.is_empty() {
        pieces.append(PyBytes::new(py, &out))?;
    }
    Ok(pieces)
}

#[pyfunction]
#[pyo3(signature = (constant, keys, entries, positions, sequence_ids, start, schemas, /))]
#[expect(clippy::too_many_arguments, reason = "Python has them in two calls")]
fn stamp_entries<'py>(
    py: Python<'py>,
    constant: &[u8],
    keys: (Vec<u8>, Vec<u8>, Vec<u8>),
    entries: &Bound<'py, PyList>,
    positions: &Bound<'py, PyList>,
    sequence_ids: &Bound<'py, PyList>,
    start: usize,
    schemas: Vec<(Vec<u8>, Vec<u8>)>,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let schemas: Vec<_> = schemas.iter().map(|(here, there)| (here.as_slice(), there.as_slice())).collect();
    let stamp = Stamp { constant, keys: [&keys.0, &keys.1, &keys.2], schemas: &schemas };
    let (copies, counts) = (PyList::empty(py), PyList::empty(py));
    for index in start..entries.len() {
        let entry = entries.get_item(index)?;
        let entry = entry.cast::<PyBytes>()?.as_bytes();
        let position: (u64, u64) = positions.get_item(index)?.extract()?;
        let sequence_id = number(&sequence_ids.get_item(index)?)?;
        let Some((copy, count)) = guarded(|| stamp.copy(entry, position, sequence_id)) else { break };
        copies.append(PyBytes::new(py, &copy))?;
        counts.append(count)?;
    }
    Ok((copies, counts))
}

#[pyfunction]
fn last_sequences<'py>(
    py: Python<'py>,
    entries: Vec<Bound<'py, PyBytes>>,
) -> PyResult<Option<(String, Bound<'py, PyList>)>> {
    let mut of_all: Option<&str> = None;
    let mut numbers = Vec::with_capacity(entries.len());
    for entry in &entries {
        let bytes = entry.as_bytes();
        match guarded(|| last_of(bytes)) {
            Some((name, last)) if of_all.is_none_or(|known| known == name) => {
                of_all = Some(name);
                numbers.push(last);
            }
            _ => return Ok(None),
        }
    }
    of_all.map(|name| Ok((name.to_owned(), PyList::new(py, numbers)?))).transpose()
}

#[pyfunction]
fn encode_answers<'py>(
    py: Python<'py>,
    envelope: &[u8],
    before: &[u8],
    after: &[u8],
    request_ids: Vec<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let answer = Answer { envelope, before, after };
    written(py, "answers", |out| answer.write_all(out, &request_ids))
}

#[pyfunction]
fn sticky_keys<'py>(py: Python<'py>, entries: Vec<Bound<'py, PyBytes>>) -> Vec<Option<Bound<'py, PyBytes>>> {
    let key_of = |entry: &[u8]| guarded(|| sticky_key(entry)).map(|key| PyBytes::new(py, key));
    entries.iter().map(|entry| key_of(entry.as_bytes())).collect()
}

#[pyfunction]
fn read_batches<'py>(
    py: Python<'py>,
    batches: Vec<(Bound<'py, PyBytes>, usize, usize)>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let batches = batches.iter().map(|(data, start, count)| (data.as_bytes(), *start, *count));
    let Some(found) = guarded(AssertUnwindSafe(|| columns_of(batches))) else { return Ok(None) };
    let numbers = (
        bytes_of(py, &found.indexes, i32::to_ne_bytes)?,
        PyBytes::new(py, &found.flags),
        bytes_of(py, &found.sequence_ids, u64::to_ne_bytes)?,
        bytes_of(py, &found.event_times, u64::to_ne_bytes)?,
        bytes_of(py, &found.property_ends, i32::to_ne_bytes)?,
    );
    let mut joined = Vec::new();
    for pieces in [&found.payloads, &found.keys, &found.ordering_keys, &found.property_names, &found.property_values] {
        let Some(ends) = guarded(|| ends_of(pieces)) else { return Ok(None) };
        joined.push((bytes_of(py, &ends, i32::to_ne_bytes)?, join(py, pieces, &ends)?));
    }
    Ok(Some((found.counts, numbers, PyTuple::new(py, joined)?).into_pyobject(py)?))
}

fn join<'py>(py: Python<'py>, pieces: &[&[u8]], ends: &[i32]) -> PyResult<Bound<'py, PyBytes>> {
    let size = ends.last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0);
    PyBytes::new_with(py, size, |out| {
        copy_pieces(pieces, out);
        Ok(())
    })
}

fn bytes_of<'py, T: Copy, const SIZE: usize>(
    py: Python<'py>,
    numbers: &[T],
    encode: impl Fn(T) -> [u8; SIZE],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, numbers.len().saturating_mul(SIZE), |out| {
        for (room, number) in out.chunks_exact_mut(SIZE).zip(numbers) {
            room.copy_from_slice(&encode(*number));
        }
        Ok(())
    })
}

#[pyfunction]
fn message_counts(entries: Vec<Bound<'_, PyBytes>>) -> Vec<u64> {
    let count = |entry: &[u8]| guarded(|| count_of(entry)).unwrap_or(0);
    entries.iter().map(|entry| count(entry.as_bytes())).collect()
}

#[pyfunction]
fn encode_receipts<'py>(
    py: Python<'py>,
    producer_id: u64,
    partition: i64,
    receipts: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut rows = Vec::with_capacity(receipts.len().unwrap_or(0));
    for row in receipts.try_iter()? {
        let row = row?;
        let row = row.cast::<PyTuple>()?;
        rows.push(Receipt {
            sequence_id: number_at(row, 0)?,
            highest_sequence_id: if row.get_item(1)?.lt(0)? { 0 } else { number_at(row, 1)? },
            ledger: number_at(row, 2)?,
            entry: number_at(row, 3)?,
        });
    }
    let partition = u64::try_from(partition).ok();
    written(py, "receipts", |out| write_receipts(out, producer_id, partition, &rows))
}

#[pyfunction]
fn encode_messages<'py>(
    py: Python<'py>,
    consumer_id: u64,
    partition: i64,
    epoch: Option<i64>,
    batch: &Bound<'py, PyAny>,
    piece_bytes_large: usize,
) -> PyResult<Bound<'py, PyList>> {
    let frames =
        Messages { consumer_id, partition: u64::try_from(partition).ok(), epoch: epoch.map(i64::cast_unsigned) };
    let pieces = PyList::empty(py);
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    for row in batch.try_iter()? {
        let row = row?;
        let row = row.cast::<PyTuple>()?;
        let place = row.get_borrowed_item(0)?;
        let place = place.cast::<PyTuple>()?;
        let entry = row.get_borrowed_item(1)?;
        let entry = entry.cast::<PyBytes>()?;
        let ack_set = words(&row.get_item(3)?)?;
        let delivery = Delivery {
            ledger: number_at(&place, 0)?,
            entry_id: number_at(&place, 1)?,
            entry: entry.as_bytes(),
            redelivery_count: number_at(row, 2)?,
            ack_set: &ack_set,
        };
        frames.write_head(&mut out, &mut scratch, &delivery);
        if delivery.entry.len() < piece_bytes_large {
            out.extend_from_slice(delivery.entry);
        } else {
            pieces.append(PyBytes::new(py, &out))?;
            pieces.append(entry)?;
            out.clear();
        }
    }
    if !out.is_empty() {
        pieces.append(PyBytes::new(py, &out))?;
    }
    Ok(pieces)
}

/// Returns what was read. Nothing there can panic; if it does, the frame is left to protobuf, and the broker goes on.
fn guarded<R>(read: impl FnOnce() -> Option<R> + UnwindSafe) -> Option<R> {
    catch_unwind(read).ok().flatten()
}

fn number_at(row: &Bound<'_, PyTuple>, index: usize) -> PyResult<u64> {
    number(&row.get_item(index)?)
}

/// Converts a Python number from -2^63 to 2^64-1 to the wire, negative ones as two's complement of 64 bits.
fn number(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    match value.extract::<i64>() {
        Ok(small) => Ok(small.cast_unsigned()),
        Err(_) => value.extract::<u64>(),
    }
}

fn words(ack_set: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    ack_set.cast::<PyTuple>()?.iter().map(|word| number(&word)).collect()
}

fn written<'py>(
    py: Python<'py>,
    what: &str,
    write: impl FnOnce(&mut Vec<u8>) + UnwindSafe,
) -> PyResult<Bound<'py, PyBytes>> {
    let out = catch_unwind(|| {
        let mut out = Vec::new();
        write(&mut out);
        out
    });
    let failed = |_| PyRuntimeError::new_err(format!("the native codec failed to write {what}"));
    Ok(PyBytes::new(py, &out.map_err(failed)?))
}

/// Frames of Pulsar's binary protocol, compiled.
#[pymodule]
mod interpulse_codec {
    #[pymodule_export]
    use super::{
        encode_answers, encode_messages, encode_receipts, encode_sends, last_sequences, message_counts, read_batches,
        stamp_entries, sticky_keys, take_acks, take_messages, take_questions, take_receipts, take_sends,
    };
}
