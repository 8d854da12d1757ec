//! Frames of Pulsar's binary protocol: what travels by the thousand, read and written in runs.
//!
//! Reading is fussy on purpose. A run ends before the first frame that is not exactly of the plain form below, be it cut
//! off, too large, damaged or merely unusual: the caller reads that one with protobuf, which knows every form and has
//! the errors. So no rule about wrong input is here, and no byte of a peer can make this fail.

mod batches;
mod metadata;
mod reading;
mod varints;
mod writing;

pub use batches::{Split, copy_payloads, measure_payloads, split_batch};
pub use metadata::{Plain, Stamp, count_of, last_of};
pub use reading::{
    Acks, Arrivals, Questions, Receipts, Sends, sticky_key, take_acks, take_messages, take_questions, take_receipts,
    take_sends,
};
pub use writing::{Answer, Delivery, Messages, Receipt, write_receipts, write_send_head};

const CHECKSUM_MARK: [u8; 2] = [0x0e, 0x01];
