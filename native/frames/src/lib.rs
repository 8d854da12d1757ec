//! Frames of Pulsar's binary protocol: commands that are sent by the thousand, read and written in runs.
//!
//! Reading is strict on purpose. A run ends before the first frame that is not exactly of the plain form below, whether
//! it is cut off, too large, damaged or merely unusual. The caller reads that one with protobuf, which accepts every
//! form and reports the errors. So this crate has no rule about wrong input, and no byte of a peer can make it fail.

mod batches;
mod metadata;
mod reading;
mod varints;
mod writing;

pub use batches::{Columns, copy_pieces, ends_of, read_batches};
pub use metadata::{Plain, Stamp, count_of, last_of};
pub use reading::{
    Acks, Arrivals, Questions, Receipts, Sends, sticky_key, take_acks, take_messages, take_questions, take_receipts,
    take_sends,
};
pub use writing::{Answer, Delivery, Messages, Receipt, write_receipts, write_send_head};

const CHECKSUM_MARK: [u8; 2] = [0x0e, 0x01];
