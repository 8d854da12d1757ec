//! Numbers and bytes in protobuf's form, and the sizes of frames.

pub fn take_bytes<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = take_small(data)?;
    let (bytes, rest) = data.split_at_checked(size)?;
    *data = rest;
    Some(bytes)
}

/// Reads a tag or a size. Those of needlessly many bytes are unusual, and too many bytes are an error.
pub fn take_small(data: &mut &[u8]) -> Option<usize> {
    let before = data.len();
    let value = take_varint(data)?;
    if before.saturating_sub(data.len()) > 3 { None } else { usize::try_from(value).ok() }
}

/// Reads a number of up to ten bytes; None if it is cut off or above 2^64-1.
pub fn take_varint(data: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0u32..64).step_by(7) {
        let (&byte, rest) = data.split_first()?;
        *data = rest;
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

pub fn split_u32(data: &[u8]) -> Option<(usize, &[u8])> {
    let (head, rest) = data.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_be_bytes(*head)).ok()?, rest))
}

pub fn put_field(out: &mut Vec<u8>, tag: u8, value: u64) {
    out.push(tag);
    put_varint(out, value);
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn varint_bytes(value: u64) -> usize {
    let bits = u64::BITS.saturating_sub(value.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}
